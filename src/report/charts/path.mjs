// SPDX-License-Identifier: Apache-2.0
// The search: what each trial gave and the best so far, over trials or over time, and what each trial cost.
import {Frame, pointsOf} from './frame.mjs';
import {byKind, common, plane, rangeOf, shown, valueAxis, zooms} from './look.mjs';

const wholeNumbers = (axis) => ({...axis, minInterval: 1});

export const path = (figure, page, kept, overTime) => {
  const {data} = page;
  const draw = (c) => {
    let spent = 0;
    const made = [];
    for (const trial of data.trials) {
      spent += (trial.seconds || 0) / 60;
      if (trial.figure === undefined) continue;  // not of the search
      made.push({trial, x: overTime ? spent : trial.id, y: trial.figure});
    }
    const figures = made.filter((one) => one.y !== null).map((one) => one.y);
    const ys = rangeOf(figures);
    const y = valueAxis(data.goal.title, ys, c, false);
    const best = [];
    const points = made.map(({trial, x, y: figure}) => {
      const one = data.configurations[trial.of];
      const passes = figure !== null && one.passes;
      if (passes && (best.length === 0 || (data.goal.less ? figure < best.at(-1)[1] : figure > best.at(-1)[1]))) best.push([x, figure]);
      const kind = figure === null ? 'failed' : one.kind === 'failed' ? 'refused' : one.kind;
      return {value: [x, figure === null ? ys[0] : figure], of: trial.of, kind,
        text: `Trial ${trial.id}: ${one.name}\n${figure === null ? trial.failure || 'no number' : data.goal.title + ': ' + shown(figure)}` +
          (overTime ? `\nafter ${shown(x)} minutes` : '')};
    });
    if (best.length > 0) best.push([made.at(-1).x, best.at(-1)[1]]);
    const series = byKind(points, c);
    series.push({type: 'line', id: 'best', step: 'end', data: best, symbol: 'none', silent: true, z: 2, lineStyle: {color: c.good, width: 2.5}});
    const x = valueAxis(overTime ? 'minutes of measuring' : 'trial', rangeOf(made.map((one) => one.x), true), c, true);
    return {
      option: {...common(c), grid: plane, xAxis: overTime ? x : wholeNumbers({...x, min: -0.5}), yAxis: figures.length > 0 ? y : {...y, axisLabel: {show: false}, splitLine: {show: false}},
        dataZoom: zooms(['x']), series},
      height: 320, zoom: ['x'], points: pointsOf(series, (p, q) => p.value[0] - q.value[0]),
      label: `Path of the search: ${made.length} trials, ${data.goal.title} against ${overTime ? 'minutes' : 'trials'}`};
  };
  return new Frame(figure, overTime ? 'path-time' : 'path-trial', page, kept, draw);
};

export const cost = (figure, page, kept) => {
  const {data} = page;
  const draw = (c) => {
    const bars = data.trials.map((trial) => ({
      value: [trial.id, trial.seconds || 0], of: trial.of, itemStyle: {color: trial.failure ? c.bad : c.accent},
      text: `Trial ${trial.id}: ${shown(trial.seconds || 0)} s${trial.failure ? ', ' + trial.failure : ''}`}));
    const top = rangeOf(bars.map((bar) => bar.value[1]), true);
    const x = valueAxis('trial', [-0.5, Math.max(...data.trials.map((trial) => trial.id), 0) + 0.5], c, true);
    const series = [{type: 'bar', id: 'cost', data: bars, barCategoryGap: '12%', barMinWidth: 1, barMaxWidth: 40,
      emphasis: {itemStyle: {borderColor: c.text, borderWidth: 2}}}];
    return {
      option: {...common(c), grid: plane, xAxis: wholeNumbers(x), yAxis: valueAxis('seconds', top, c, false), dataZoom: zooms(['x']), series},
      height: 200, zoom: ['x'], points: bars.map((bar, index) => ({series: 'cost', index, text: bar.text, of: bar.of, value: bar.value})),
      label: `What each trial cost: ${bars.length} trials, seconds`};
  };
  return new Frame(figure, 'cost', page, kept, draw);
};
