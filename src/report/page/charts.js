// SPDX-License-Identifier: Apache-2.0
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
      const [acrossText, upText] = [item.x, item.y].map((value) => Math.abs(value) < 1000 ? Number(value.toPrecision(3)) : Math.round(value));
      item.text = [name, `${titleY}: ${upText}`, `${titleX}: ${acrossText}`, verdict].filter(Boolean).join('\n');
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

// `page`: {data, choose}; called each time that the content is new.
charts.show = (page) => {
  for (const one of charts.all) one.end();
  charts.all = all('figure[data-chart]').map((figure) => {
    const chart = new Plane(figure, figure.querySelector(':scope > svg'), page);
    if (figure.dataset.chart === 'trade') setUpTrade(chart, page);
    chart.begin();
    return chart;
  });
};
// Paper is as wide as the drawings were made.
addEventListener('beforeprint', () => charts.all.forEach((chart) => chart.layout(chart.width = 720)));
addEventListener('afterprint', () => charts.all.forEach((chart) => chart.fit()));
