// SPDX-License-Identifier: Apache-2.0
// Latencies at percentiles: the default, the recommended configuration, and any trial.
import {Frame, pointsOf} from './frame.mjs';
import {common, plane, rangeOf, shown, valueAxis} from './look.mjs';

export const latency = (figure, page, kept) => {
  const {data} = page;
  const fields = ['latency-family', 'latency-trial'].map((id) => document.getElementById(id));
  const draw = (c) => {
    const family = data.latencies[Number(fields[0].value)];
    const trial = data.trials.find((one) => String(one.id) === fields[1].value);
    const usual = data.configurations.find((one) => one.kind === 'usual');
    const recommended = data.configurations.find((one) => one.kind === 'recommended');
    const curves = [['usual', 'the default', usual, c.other, 'rect', 'dashed'], ['recommended', 'recommended', recommended, c.good, 'diamond', 'solid'],
      ['trial', trial && 'trial ' + trial.id, trial, c.accent, 'circle', 'dotted']].filter(([, , one]) => one && one.values);
    const series = [];
    for (const [id, title, one, color, symbol, type] of curves) {
      const points = family.metrics.map((metric, k) => ({value: [family.levels[k], one.values[metric]], of: one.of, key: id + family.levels[k],
        text: `${title}\n${family.levels[k]} of ${family.title}: ${shown(one.values[metric])} ms`})).filter((p) => p.value[1] !== null);
      series.push({type: 'line', id: id + '-line', data: points.map((p) => p.value), symbol: 'none', silent: true, lineStyle: {color, width: 2, type},
        endLabel: {show: true, formatter: () => title, color: c.text, fontSize: 12}, labelLayout: {moveOverlap: 'shiftY'}});
      series.push({type: 'scatter', id, symbol, symbolSize: 11, itemStyle: {color, opacity: 1, borderColor: c.ground, borderWidth: 1}, data: points,
        emphasis: {scale: 1.5}});
    }
    const values = curves.flatMap(([, , one]) => family.metrics.map((metric) => one.values[metric])).filter((value) => value !== null);
    return {
      option: {...common(c), grid: {...plane, right: 100}, series, yAxis: valueAxis(family.title + ' (ms)', rangeOf(values, true), c, false),
        xAxis: {type: 'category', data: family.levels, boundaryGap: false, axisLine: {lineStyle: {color: c.soft}}, axisLabel: {color: c.soft, fontSize: 11}}},
      height: 300, points: pointsOf(series, () => 0), label: `${family.title} at ${family.levels.join(', ')}: ${curves.map(([, title]) => title).join(', ')}`};
  };
  const frame = new Frame(figure, 'latency', page, kept, draw);
  for (const field of fields) field.addEventListener('change', () => frame.redraw());
  return frame;
};
