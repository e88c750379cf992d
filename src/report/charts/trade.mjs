// SPDX-License-Identifier: Apache-2.0
// Two metrics against each other, and the front of the configurations that pass.
import {Frame, pointsOf} from './frame.mjs';
import {byKind, common, plane, rangeOf, shown, valueAxis, zooms} from './look.mjs';

export const trade = (figure, page, kept) => {
  const {data} = page;
  const selects = ['trade-x', 'trade-y'].map((id) => document.getElementById(id));
  const draw = (c) => {
    const [x, y] = selects.map((select) => Number(select.value));
    const points = [];
    data.configurations.forEach((one, of) => {
      const value = [one.values[x], one.values[y]];
      if (value[0] === null || value[1] === null) return;
      points.push({value, of, kind: one.kind === 'failed' ? 'refused' : one.kind,
        text: `${one.name}\n${data.titles[x]}: ${shown(value[0])}\n${data.titles[y]}: ${shown(value[1])}${one.verdict ? '\n' + one.verdict : ''}`});
    });
    const front = page.frontOf(x, y);
    const series = byKind(points, c);
    if (front.length > 1)
      series.push({type: 'line', id: 'front', data: front.map((p) => [p.a, p.b]), symbol: 'none', silent: true, z: 2,
        lineStyle: {color: c.good, width: 2.5}});
    const option = {...common(c), grid: plane, xAxis: valueAxis(data.titles[x], rangeOf(points.map((p) => p.value[0])), c, true),
      yAxis: valueAxis(data.titles[y], rangeOf(points.map((p) => p.value[1])), c, false), dataZoom: zooms(['x', 'y']), series};
    return {option, height: 360, zoom: ['x', 'y'], points: pointsOf(series, (p, q) => p.value[0] - q.value[0] || p.value[1] - q.value[1]),
      label: `${data.titles[y]} against ${data.titles[x]}, ${points.length} configurations, ${front.length} of them on the front`};
  };
  const frame = new Frame(figure, 'trade', page, kept, draw);
  for (const select of selects) select.addEventListener('change', () => frame.redraw());
  return frame;
};
