// SPDX-License-Identifier: Apache-2.0
// Asks the server what happens, each second, and renews the content. What a person has chosen on it stays.
{
  const live = document.getElementById('live');
  const trialLine = document.getElementById('live-trial');
  const nowLine = document.getElementById('live-now');
  let state = null;
  let shown = live.dataset.version;
  let fetching = false;
  let lost = false;
  const duration = (seconds) => seconds < 90 ? Math.round(seconds) + ' s'
    : seconds < 5400 ? Math.round(seconds / 60) + ' min' : (seconds / 3600).toFixed(1) + ' h';
  const tell = (line, text) => { if (line.textContent !== text) line.textContent = text; };

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
  for (const name of ['pointerdown', 'pointermove', 'pointerup', 'pointercancel', 'keydown', 'change'])
    addEventListener(name, touch, {passive: true});
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
  const focus = (place) => {
    const element = place && document.activeElement === document.body && elementAt(place);
    if (!element) return;
    element.focus({preventScroll: true});
    if (place.caret) element.setSelectionRange(...place.caret);
  };
  const say = () => {
    if (lost) {
      tell(trialLine, state && state.running && state.ended ? state.ended : 'The connection is lost; this page tries again.');
      tell(nowLine, '');
      return;
    }
    if (!state) return;
    nowLine.hidden = !state.running;
    const counts = (state.told - state.failed) + (state.told - state.failed === 1 ? ' trial' : ' trials') + ' measured, ' +
      (state.failed || 'none') + ' failed' + (state.best && !state.ended ? '; ' + state.best : '');
    const now = state.trial ? `${state.trial}: ${state.tried}. ` : state.running ? ''
      : state.ended ? `The study has ended: ${state.ended.replaceAll('_', ' ')}. ` : 'No run is under way. ';
    tell(trialLine, state.running && state.ended ? state.ended : now + counts);
    const parts = [];
    if (state.phase) parts.push(state.phase);
    if (state.began) parts.push('for ' + duration(Math.max(0, Date.now() / 1000 - state.began)));
    if (state.left !== null) parts.push(state.left > 0 ? 'about ' + duration(state.left) + ' left' : 'a few seconds left');
    tell(nowLine, state.ended ? '' : parts.join(', '));
  };
  const chosen = () => ({
    fields: all('main select, main input').filter((one) => one.id).map((one) => [one.id, one.value]),
    sorted: all('table.sortable').map((table) => {
      const heads = Array.from(table.querySelectorAll('thead th'));
      const at = heads.findIndex((head) => head.hasAttribute('aria-sort'));
      return at < 0 ? null : [at, heads[at].getAttribute('aria-sort')];
    }),
    focus: placeOf(document.activeElement),
    across: all('main .wide').map((one) => [one.scrollLeft, one.scrollTop]),
    at: [scrollX, scrollY],
  });
  const choose = (before) => {
    for (const [id, value] of before.fields) {
      const field = document.getElementById(id);
      if (!field || field.value === value) continue;
      field.value = value;
      field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input'));
    }
    all('table.sortable').forEach((table, i) => {
      if (!before.sorted[i]) return;
      const head = table.querySelectorAll('thead th')[before.sorted[i][0]];
      for (let turns = 0; head && turns < 2 && head.getAttribute('aria-sort') !== before.sorted[i][1]; ++turns)
        head.querySelector('button').click();
    });
    all('main .wide').forEach((one, i) => { if (before.across[i]) [one.scrollLeft, one.scrollTop] = before.across[i]; });
    focus(before.focus);
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
      charts.renewing = true;
      document.querySelector('main').replaceChildren(...page.querySelector('main').childNodes);
      document.getElementById('data').textContent = page.getElementById('data').textContent;
      shown = page.getElementById('live').dataset.version;
      due = null;
      showPage();
      choose(before);
    } catch (error) {
      // The server has gone; the next question says so.
    } finally {
      fetching = false;
      charts.renewing = false;
    }
  };
  const ask = async () => {
    try {
      const answer = await fetch('./state', {cache: 'no-store'});
      state = await answer.json();
      lost = false;
    } catch (error) {
      lost = true;
    }
    say();
    renew();
    setTimeout(ask, 1000);
  };
  ask();
}
