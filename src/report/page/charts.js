// SPDX-License-Identifier: Apache-2.0
// What each level of a parameter does. One that is picked keeps the configurations that have it.
class Intervals extends Chart {
  constructor(figure, box, page) {
    super(figure, box, page);
    box.setAttribute('aria-label', box.caption.textContent);
    this.items = this.order = all('tr:not(.scale)', box).map((element) => {
      const [name, , figures] = Array.from(element.cells, (cell) => cell.textContent);
      return {element, text: name + '\n' + figures, name};
    });
    const picked = this.items.find((item) => item.name === this.kept.row);
    if (picked) this.pick(picked);
  }
  keysText() {
    return 'Arrow keys go from level to level; Enter shows the configurations that have it.';
  }
  nearest(x, y) {
    const row = document.elementFromPoint(x, y);
    return this.items.find((item) => item.element.contains(row));
  }
  show(item) {  // its row says all
    this.leave();
    this.hot = item;
    item.element.classList.add('hot');
  }
  pick(item) {
    if (!item.element.dataset.level) return;
    const [parameter, value] = item.element.dataset.level.split(' ').map(Number);
    const left = this.page.data.configurations.flatMap((one, of) => one.settings[parameter] === value ? [of] : []);
    this.kept.row = item.name;
    this.page.keep(new Set(left), this);
    this.say(`${left.length} configurations have ${item.name}; the table shows these.`);
  }
  cleared() {
    if (this.kept.row !== undefined) this.say('');
    this.kept.row = undefined;
  }
}

// The path of the search over trials or over time.
const setUpPath = (plane, {data}) => {
  const field = document.getElementById('path-axis');
  const ends = [];  // minutes of measuring, by trial
  data.trials.reduce((spent, trial) => ends[trial.id] = spent + (trial.seconds || 0) / 60, 0);
  const {low, high, ticks} = plane.axes.x, trials = plane.items.map((item) => item.x);
  const lines = plane.lines.map((line) => line.points);
  field.addEventListener('change', () => {
    const time = field.value === 'time', at = (trial) => time ? ends[trial] : trial;
    plane.items.forEach((item, i) => { item.x = at(trials[i]); });
    plane.lines.forEach((line, i) => { line.points = lines[i].map(([trial, y]) => [at(trial), y]); });
    if (time) plane.axis('x', 'minutes of measuring', plane.items.map((item) => item.x), {low: 0, ticks: 'any'});
    else plane.axis('x', 'trial', [], {low, high, ticks});
    plane.layout();
  });
};

// Any two metrics against each other, with the front of both.
const setUpTrade = (plane, {data}) => {
  const fields = ['trade-x', 'trade-y'].map((id) => document.getElementById(id));
  const caption = plane.figure.querySelector('figcaption');
  const better = (a, b, metric) => data.less[metric] ? a <= b : a >= b;
  const show = () => {
    const [x, y] = fields.map((field) => Number(field.value)), [titleX, titleY] = [data.titles[x], data.titles[y]];
    for (const item of plane.items) {
      const {name, values, verdict} = data.configurations[item.of];
      [item.x, item.y] = [x, y].map((metric) => values[metric] === null ? NaN : values[metric]);
      item.text = [name, `${titleY}: ${item.y}`, `${titleX}: ${item.x}`, verdict].filter(Boolean).join('\n');
    }
    const both = plane.items.filter((item) => Number.isFinite(item.x) && Number.isFinite(item.y));
    const passing = both.filter((item) => data.configurations[item.of].passes);
    const beats = (q, p) => better(q.x, p.x, x) && better(q.y, p.y, y) && (q.x !== p.x || q.y !== p.y);
    const front = passing.filter((p) => !passing.some((q) => beats(q, p))).sort((p, q) => p.x - q.x || p.y - q.y);
    plane.lines[0].points = front.map((item) => [item.x, item.y]);
    plane.axis('x', titleX, both.map((item) => item.x));
    plane.axis('y', titleY, both.map((item) => item.y));
    plane.layout();
    set(plane.box, {'aria-label': `${titleY} against ${titleX}, ${both.length} configurations, ${front.length} of them on the front`});
    caption.textContent = `${front.length} of ${passing.length} configurations that pass are on the front of these two.`;
  };
  for (const field of fields) field.addEventListener('change', show);
};

// Latencies of one kind, with any trial beside the default and the recommended configuration.
const setUpLatency = (plane, {data}) => {
  const [kind, of] = ['latency-family', 'latency-trial'].map((id) => document.getElementById(id));
  const number = Number(plane.name.split('-')[1]), {title, levels, metrics} = data.latencies[number];
  const beside = plane.items.filter((item) => item.element.matches('.trial'));
  const line = plane.lines.find(({element}) => element.matches('.trial'));
  const show = () => {
    const trial = data.trials.find((one) => String(one.id) === of.value);
    beside.forEach((item, i) => {
      const value = trial && trial.values ? trial.values[metrics[i]] : null;
      Object.assign(item, {y: value === null ? NaN : value, of: trial && trial.of,
        text: `trial ${of.value}\n${levels[i]}: ${value} ms`});
    });
    line.points = beside.filter((item) => Number.isFinite(item.y)).map((item) => [item.x, item.y]);
    plane.axis('y', `${title} (ms)`, plane.items.map((item) => item.y), {low: 0});
    plane.layout();
  };
  const choose = () => { plane.figure.hidden = Number(kind.value) !== number; };
  kind.addEventListener('change', choose);
  of.addEventListener('change', show);
  choose();
};

// `page`: {data, choose, keep}; called each time that the content is new.
charts.show = (of) => {
  // The table shows what one chart has chosen; a choice in another chart takes its place.
  const keep = (numbers, chart) => {
    for (const one of charts.all) if (one !== chart) one.cleared();
    of.keep(numbers);
  };
  const page = {...of, keep};
  const setUps = {path: setUpPath, trade: setUpTrade};
  const zooms = {path: 'x', drift: 'x', trade: 'xy'};
  for (const one of charts.all) one.end();
  charts.all = [];
  for (const figure of all('figure[data-chart]')) {
    const box = figure.querySelector(':scope > svg, :scope > .intervals'), name = figure.dataset.chart;
    const chart = box.matches('.plane') ? new Plane(figure, box, page, zooms[name] || '')
      : box.matches('.parallel') ? new Parallel(figure, box, page) : new Intervals(figure, box, page);
    charts.all.push(chart);
    if (setUps[name]) setUps[name](chart, page);
    if (name.startsWith('latency')) setUpLatency(chart, page);
    chart.begin();
  }
};
charts.cleared = () => charts.all.forEach((chart) => chart.cleared());
// Paper is as wide as the drawings were made.
addEventListener('beforeprint', () => charts.all.forEach((chart) => chart.layout(chart.width = 720)));
addEventListener('afterprint', () => charts.all.forEach((chart) => chart.fit()));
