// SPDX-License-Identifier: Apache-2.0
#include "html_style.hpp"

namespace servetune {

const std::string_view html_script = R"js(
'use strict';
document.documentElement.classList.add('has-script');
const data = JSON.parse(document.getElementById('data').textContent);
const all = (selector, from) => Array.from((from || document).querySelectorAll(selector));
const svgElement = (name, attributes, parent) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (parent) parent.append(element);
  return element;
};

// Copy the command.
for (const button of all('button[data-copy]'))
  button.addEventListener('click', async () => {
    const text = document.getElementById(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch (error) {
      const range = document.createRange();
      range.selectNodeContents(document.getElementById(button.dataset.copy));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = 'Selected: press Ctrl-C';
    }
  });

// Tables: a column's button sorts by it, the filter keeps rows with a text.
for (const table of all('table.sortable')) {
  const body = table.tBodies[0];
  all('thead th', table).forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener('click', () => {
      const up = head.getAttribute('aria-sort') !== 'ascending';
      all('thead th', table).forEach((other) => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const key = (row) => {
        const cell = row.cells[column];
        if (cell.dataset.value !== undefined) return cell.dataset.value === '' ? null : Number(cell.dataset.value);
        return cell.textContent.toLowerCase();
      };
      const rows = Array.from(body.rows).map((row) => [key(row), row]);
      rows.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null);
        const order = a < b ? -1 : a > b ? 1 : 0;
        return up ? order : -order;
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}
// On a narrow screen each row is a list of its cells, each with its column's title.
for (const table of all('.wide table')) {
  const titles = all('thead th', table).map((head) => head.textContent);
  for (const row of all('tbody tr', table)) Array.from(row.cells).forEach((cell, column) => { cell.dataset.title = titles[column]; });
}
// Rows that are kept: by their text, and by what was chosen in a drawing.
const filter = document.getElementById('filter');
const shownLine = document.getElementById('shown');
let kept = null;  // numbers of configurations; null: all
const showRows = () => {
  const wanted = filter.value.toLowerCase();
  const rows = all('#results tbody tr');
  for (const row of rows)
    row.hidden = !row.textContent.toLowerCase().includes(wanted) || (kept !== null && !kept.has(Number(row.dataset.index)));
  const shown = rows.filter((row) => !row.hidden).length;
  const why = [wanted === '' ? '' : 'with this text', kept === null ? '' : 'chosen in a chart'].filter((one) => one !== '');
  shownLine.textContent = why.length === 0 ? '' : `${shown} of ${rows.length} rows: ${why.join(' and ')}`;
  document.getElementById('show-all').hidden = why.length === 0;
};
if (filter) {
  const button = document.createElement('button');
  Object.assign(button, {type: 'button', id: 'show-all', textContent: 'Show all rows', hidden: true});
  button.addEventListener('click', () => {
    filter.value = '';
    keep(null);
    if (charts) charts.cleared();
  });
  shownLine.after(button);
  filter.addEventListener('input', showRows);
}
const keep = (numbers) => {
  kept = numbers;
  if (filter) showRows();
};

// A row that is chosen is seen in the drawings too, and the other way round.
const charts = window.servetuneCharts;
const choose = (index) => {
  for (const row of all('#results tbody tr')) row.classList.toggle('chosen', Number(row.dataset.index) === index);
  const label = data.configurations[index].name;
  for (const thread of all('.thread')) thread.classList.toggle('chosen', thread.querySelector('title').textContent.startsWith(label + ': '));
  if (charts) charts.chosen(index);
};
for (const row of all('#results tbody tr'))
  for (const event of ['mouseenter', 'focusin', 'click']) row.addEventListener(event, () => choose(Number(row.dataset.index)));

// Path of the search: over trials or over time.
const pathChoice = document.getElementById('path-axis');
if (pathChoice) {
  const show = () => {
    for (const figure of all('[data-path]')) figure.hidden = figure.dataset.path !== pathChoice.value;
  };
  pathChoice.addEventListener('change', show);
  show();
}

// Trade-off: any two metrics against each other, with the front of both.
const pairsOf = (x, y) => data.configurations.map((one, index) => ({a: one.values[x], b: one.values[y], index, kind: one.kind, name: one.name,
  verdict: one.verdict})).filter((p) => p.a !== null && p.b !== null);
const better = (a, b, metric) => (data.less[metric] ? a <= b : a >= b);
const works = (p) => data.configurations[p.index].passes;
const frontOf = (x, y) => {
  const passing = pairsOf(x, y).filter(works);
  const front = passing.filter((p) => !passing.some((q) => better(q.a, p.a, x) && better(q.b, p.b, y) && (q.a !== p.a || q.b !== p.b)));
  return front.sort((p, q) => p.a - q.a || p.b - q.b);
};
const shapes = {recommended: 'm-7 0l7 -7 7 7 -7 7z', usual: 'm-4.5 -4.5h9v9h-9z', refused: 'm-5 4l5 -9 5 9z'};
const cellIn = (row, text, kind) => {
  const cell = row.insertCell();
  cell.textContent = text;
  if (kind) cell.className = kind;
  return cell;
};
const drawTrade = () => {
  const figure = document.getElementById('trade');
  if (!figure) return;
  const [x, y] = ['trade-x', 'trade-y'].map((id) => Number(document.getElementById(id).value));
  const points = pairsOf(x, y);
  const front = frontOf(x, y);
  const svg = svgElement('svg', {viewBox: '0 0 720 340', role: 'img',
    'aria-label': data.titles[y] + ' against ' + data.titles[x] + ', ' + points.length + ' configurations'});
  figure.querySelector(':scope > svg').replaceWith(svg);
  const table = document.getElementById('trade-table');
  const heads = table.tHead.rows[0].cells;
  [heads[1].textContent, heads[2].textContent] = [data.titles[y], data.titles[x]];
  table.tBodies[0].replaceChildren();
  for (const p of points) {
    const row = table.tBodies[0].insertRow();
    cellIn(row, p.name, 'text');
    for (const value of [p.b, p.a]) cellIn(row, value);
    cellIn(row, p.verdict, 'text');
    Array.from(row.cells).forEach((cell, column) => { cell.dataset.title = heads[column].textContent; });
  }
  figure.querySelector('figcaption').textContent =
    front.length + ' of ' + points.filter(works).length + ' configurations that pass are on the front of these two.';
  if (points.length === 0) {
    svgElement('text', {x: 360, y: 170, 'text-anchor': 'middle'}, svg).textContent = 'no configuration has both';
    return;
  }
  const range = (values) => {
    let low = Math.min(...values), high = Math.max(...values);
    const room = high - low > 1e-9 * Math.max(Math.abs(low), Math.abs(high)) ? 0.05 * (high - low) : Math.abs(high) * 0.05 || 1;
    return [low - room, high + room];
  };
  const [left, right, top, bottom] = [88, 14, 34, 44];
  const xs = range(points.map((p) => p.a)), ys = range(points.map((p) => p.b));
  const across = (v) => left + (720 - left - right) * (v - xs[0]) / (xs[1] - xs[0]);
  const up = (v) => 340 - bottom - (340 - top - bottom) * (v - ys[0]) / (ys[1] - ys[0]);
  const ticks = ([low, high]) => {
    const raw = (high - low) / 6, power = 10 ** Math.floor(Math.log10(raw));
    const step = power * (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10);
    const result = [];
    const digits = Math.min(9, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
    for (let i = 0, n = Math.ceil(low / step); i < 24 && (n + i) * step <= high; ++i) result.push([(n + i) * step, digits]);
    return result;
  };
  for (const [value, digits] of ticks(ys)) {
    svgElement('path', {class: 'grid', d: `M${left} ${up(value)}H${720 - right}`}, svg);
    svgElement('text', {x: left - 6, y: up(value) + 4, 'text-anchor': 'end', class: 'tick'}, svg).textContent = value.toFixed(digits);
  }
  for (const [value, digits] of ticks(xs))
    svgElement('text', {x: across(value), y: 340 - bottom + 18, 'text-anchor': 'middle', class: 'tick'}, svg).textContent = value.toFixed(digits);
  svgElement('path', {class: 'axis', d: `M${left} ${top}V${340 - bottom}H${720 - right}`}, svg);
  svgElement('text', {x: 390, y: 336, 'text-anchor': 'middle', class: 'label'}, svg).textContent = data.titles[x];
  svgElement('text', {x: 8, y: 18, class: 'label'}, svg).textContent = data.titles[y];
  if (front.length > 1)
    svgElement('path', {class: 'line front', d: 'M' + front.map((p) => across(p.a) + ' ' + up(p.b)).join('L')}, svg);
  for (const p of points) {
    const shape = shapes[p.kind] || 'm-4 0a4 4 0 1 0 8 0 4 4 0 1 0 -8 0z';
    const mark = svgElement('path', {class: 'mark ' + p.kind, d: `M${across(p.a)} ${up(p.b)}${shape}`}, svg);
    svgElement('title', {}, mark).textContent = `${p.name}: ${data.titles[x]} ${p.a}, ${data.titles[y]} ${p.b}`;
    mark.addEventListener('mouseenter', () => choose(p.index));
  }
};
for (const id of ['trade-x', 'trade-y']) {
  const select = document.getElementById(id);
  if (select) select.addEventListener('change', drawTrade);
}

// Latencies: one drawing of several, and a trial beside the others in the table.
const family = document.getElementById('latency-family');
if (family) {
  const trialField = document.getElementById('latency-trial');
  const drawings = all('figure[data-chart=latency] > svg');
  const showFamily = () => drawings.forEach((one, i) => one.classList.toggle('off', i !== Number(family.value)));
  const showTrial = () => {
    const trial = data.trials.find((one) => String(one.id) === trialField.value);
    const table = document.getElementById('latency-table');
    for (const cell of all('.of-trial', table)) cell.remove();
    if (!trial) return;
    const head = document.createElement('th');
    Object.assign(head, {scope: 'col', className: 'of-trial', textContent: 'trial ' + trial.id});
    table.tHead.rows[0].append(head);
    for (const row of table.tBodies[0].rows) {
      const value = trial.values[Number(row.dataset.metric)];
      cellIn(row, value === null ? '–' : value, 'of-trial').dataset.title = head.textContent;
    }
  };
  family.addEventListener('change', showFamily);
  trialField.addEventListener('change', showTrial);
  showFamily();
}
if (charts) charts.show({data, choose, keep, frontOf});

// Downloads.
const offer = (name, type, text) => {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
const csvCell = (value) => {
  let text = value === null || value === undefined ? '' : String(value);
  // A spreadsheet would take it for a formula.
  if (/^'*[=+\-@\t\r\n]/.test(text) && typeof value !== 'number') text = "'" + text;
  return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
};
const buttons = {
  'get-json': () => offer(data.study + '.json', 'application/json', JSON.stringify(data.report, null, 2) + '\n'),
  'get-csv': () => {
    const lines = [['trial', 'workload', 'setting', 'seconds', 'failure'].concat(data.metrics)];
    for (const trial of data.trials)
      lines.push([trial.id, trial.workload, data.configurations[trial.of].name, trial.seconds, trial.failure].concat(
          trial.values || data.metrics.map(() => null)));
    offer(data.study + '.csv', 'text/csv', lines.map((line) => line.map(csvCell).join(',')).join('\n') + '\n');
  },
};
for (const [id, action] of Object.entries(buttons)) {
  const button = document.getElementById(id);
  if (button) button.addEventListener('click', action);
}
)js";

// Of a page that a server renews. What a person has chosen on it stays.
const std::string_view html_live_script = R"js(
{
  const live = document.getElementById('live');
  const trialLine = document.getElementById('live-trial');
  const nowLine = document.getElementById('live-now');
  const select = (selector) => Array.from(document.querySelectorAll(selector));
  let state = null;
  let shown = live.dataset.version;
  let fetching = false;
  let lost = false;
  const duration = (seconds) => seconds < 90 ? Math.round(seconds) + ' s'
    : seconds < 5400 ? Math.round(seconds / 60) + ' min' : (seconds / 3600).toFixed(1) + ' h';
  const set = (line, text) => { if (line.textContent !== text) line.textContent = text; };

  // While a hand is at work nothing is taken from under it, for half a minute at most.
  const patience = 1500, most = 30000;  // milliseconds
  let pressed = false;  // a list that was opened by the mouse reports nothing until it is closed
  let touched = 0;
  let due = null;
  const touch = (event) => {
    touched = Date.now();
    if (event.type === 'pointerdown') pressed = true;
    else if (event.type !== 'keydown' && !(event.type === 'pointermove' && event.buttons !== 0)) pressed = false;
  };
  for (const name of ['pointerdown', 'pointermove', 'pointerup', 'pointercancel', 'keydown', 'change']) addEventListener(name, touch, {passive: true});
  const held = () => {
    due = due || Date.now();
    return (pressed || Date.now() - touched < patience) && Date.now() - due < most;
  };

  // Where the keys go: an element with a name of its own, or one that says the same at the same
  // place.
  const said = (one) => (one.getAttribute('aria-label') || one.textContent).split(':')[0].trim();
  const placeOf = (one) => {
    if (!one || one === document.body) return null;
    if (one.id) return {id: one.id, caret: one.matches('input') ? [one.selectionStart, one.selectionEnd] : null};
    const near = one.parentElement.closest('[id], [data-chart]');
    const within = !near ? 'body' : near.id ? '#' + CSS.escape(near.id) : `[data-chart="${CSS.escape(near.dataset.chart)}"]`;
    return {within, tag: one.tagName, said: said(one)};
  };
  const elementAt = (place) => {
    if (place.id) return document.getElementById(place.id);
    const within = document.querySelector(place.within);
    return within && Array.from(within.querySelectorAll(place.tag)).find((one) => said(one) === place.said);
  };
  const focus = (place, frames) => {
    if (!place || document.activeElement !== document.body) return;
    const element = elementAt(place);
    if (element) {
      element.focus({preventScroll: true});
      if (place.caret) element.setSelectionRange(...place.caret);
    } else if (frames > 0) {
      requestAnimationFrame(() => focus(place, frames - 1));  // charts are drawn in the next one
    }
  };
  const say = () => {
    if (lost) {
      set(trialLine, state && state.ended ? state.ended : 'The connection is lost; this page tries again.');
      set(nowLine, '');
      return;
    }
    if (!state) return;
    const counts = state.told + ' trials told, ' + state.failed + ' of them failed' + (state.best ? '; ' + state.best : '');
    set(trialLine, state.ended || (state.trial ? state.trial + ': ' + state.tried + '. ' : state.running ? '' : 'Nobody runs this study now. ') + counts);
    const parts = [];
    if (state.phase) parts.push(state.phase);
    if (state.began) parts.push('for ' + duration(Math.max(0, Date.now() / 1000 - state.began)));
    if (state.left !== null) parts.push(state.left > 0 ? 'at most ' + duration(state.left) + ' left' : 'a few seconds left');
    set(nowLine, state.ended ? '' : parts.join(', '));
  };
  const chosen = () => ({
    fields: select('main select, main input').filter((one) => one.id).map((one) => [one.id, one.value]),
    open: select('main details').map((one) => [one.querySelector('summary').textContent.split(':')[0], one.open]),
    sorted: select('table.sortable').map((table) => {
      const heads = Array.from(table.querySelectorAll('thead th'));
      const at = heads.findIndex((head) => head.hasAttribute('aria-sort'));
      return at < 0 ? null : [at, heads[at].getAttribute('aria-sort')];
    }),
    focus: placeOf(document.activeElement),
    across: select('main .wide').map((one) => [one.scrollLeft, one.scrollTop]),
    at: [scrollX, scrollY],
  });
  const choose = (before) => {
    select('main details').forEach((one) => {
      const known = before.open.find(([name]) => name === one.querySelector('summary').textContent.split(':')[0]);
      if (known) one.open = known[1];
    });
    for (const [id, value] of before.fields) {
      const field = document.getElementById(id);
      if (!field || field.value === value) continue;
      field.value = value;
      field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input'));
    }
    select('table.sortable').forEach((table, i) => {
      if (!before.sorted[i]) return;
      const head = table.querySelectorAll('thead th')[before.sorted[i][0]];
      for (let turns = 0; head && turns < 2 && head.getAttribute('aria-sort') !== before.sorted[i][1]; ++turns)
        head.querySelector('button').click();
    });
    select('main .wide').forEach((one, i) => { if (before.across[i]) [one.scrollLeft, one.scrollTop] = before.across[i]; });
    focus(before.focus, 10);
    scrollTo(...before.at);
  };
  const renew = async () => {
    if (fetching || !state || state.version === shown || !getSelection().isCollapsed || held()) return;
    fetching = true;
    try {
      const answer = await fetch('./', {cache: 'no-store'});
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      if (held()) return;  // the answer took its time
      const before = chosen();
      if (window.servetuneCharts) window.servetuneCharts.renewal();
      for (const place of ['main', 'header nav'])
        document.querySelector(place).replaceChildren(...page.querySelector(place).childNodes);
      document.getElementById('data').textContent = page.getElementById('data').textContent;
      shown = page.getElementById('live').dataset.version;
      due = null;
      showPage();
      choose(before);
    } catch (error) {
      // The server has gone; the events say so.
    } finally {
      fetching = false;
      if (window.servetuneCharts) window.servetuneCharts.renewed();
    }
  };
  const source = new EventSource('events');
  source.addEventListener('state', (event) => {
    lost = false;
    state = JSON.parse(event.data);
    say();
    renew();
  });
  source.addEventListener('error', () => { lost = true; say(); });
  setInterval(() => { say(); renew(); }, 1000);
}
)js";

}  // namespace servetune
