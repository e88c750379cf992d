# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a study and of its recommendation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._recommendation import Recommendation
    from ._trial import Trial

_most_rows = 50
"""A longer table hides the rest of a notebook: of more trials the last ones are shown."""


def shown(value: object) -> str:
    """A value for people: `None` is no flag.

    >>> [shown(value) for value in (None, True, 0.1 + 0.2, "a")]
    ['no flag', 'true', '0.3', 'a']
    """
    if value is None:
        return "no flag"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def recommendation_html(recommendation: Recommendation) -> str:
    """The verdict, and the recommended configuration beside the default."""
    chosen = recommendation.configuration or {}
    usual = recommendation.default
    metrics = list(dict.fromkeys([*usual.metrics, *recommendation.metrics]))
    rows = [
        [name, _cell(usual.configuration, name), _cell(chosen, name)]
        for name in dict.fromkeys([*usual.configuration, *chosen])
    ]
    rows += [[name, _cell(usual.metrics, name), _cell(recommendation.metrics, name)] for name in metrics]
    gain = recommendation.gain
    if gain is not None and not recommendation.keep_default:
        rows.append(["gain", "", recommendation.gain_text(gain.value) + recommendation.interval_text()])
    head = f"<p><b>{_escaped(recommendation.headline)}.</b> {_escaped(recommendation.reason)} {_escaped(recommendation.advice)}</p>"
    return head + _table(["", "default", "recommended"], rows)


def study_html(trials: Sequence[Trial], recommendation: Recommendation, page: str) -> str:
    """The conclusion, the path of the search where there is a report's `page`, and the trials."""
    parameters = list(dict.fromkeys(name for trial in trials for name in trial.configuration))
    metrics = list(dict.fromkeys(name for trial in trials for name in trial.metrics))
    rows = []
    for trial in trials[-_most_rows:]:
        figures = [shown(trial.metrics[name].value) if name in trial.metrics else "" for name in metrics]
        state = trial.failure.kind if trial.failure is not None else trial.state
        rows.append([str(trial.id), *(_cell(trial.configuration, name) for name in parameters), *figures, state])
    left_out = len(trials) - len(rows)
    note = f"<p>The last {len(rows)} of {len(trials)} trials:</p>" if left_out else ""
    table = _table(["trial", *parameters, *metrics, "state"], rows)
    return recommendation_html(recommendation) + path_image(page) + note + table


def path_image(page: str) -> str:
    """The path of the search in a page of `autotune report --html`, as an image whose style is its own."""
    style = re.search(r"<style>.*?</style>", page, re.DOTALL)
    plot = re.search(r'<figure data-chart="path"><svg (.*?)</svg>\s*<figcaption', page, re.DOTALL)
    if style is None or plot is None:
        return ""
    import urllib.parse

    place = 'xmlns="http://www.w3.org/2000/svg" width="720" height="300" style="background:var(--ground)"'
    drawing = f"<svg {place} {plot[1]}".replace(">", f">{style[0]}", 1) + "</svg>"
    return f'<img alt="path of the search" src="data:image/svg+xml,{urllib.parse.quote(drawing)}">'


def _cell(values: object, name: str) -> str:
    assert isinstance(values, dict)
    return shown(values[name]) if name in values else ""


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    def row(cells: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{_escaped(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f"<table><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table>"


def _escaped(text: str) -> str:
    import html

    return html.escape(text)
