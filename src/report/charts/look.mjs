// SPDX-License-Identifier: Apache-2.0
// How charts look: the colours and the marks of the page's style sheet (src/report/html_style.cpp).

export const colours = () => {
  const style = getComputedStyle(document.documentElement);
  const names = ['ground', 'panel', 'text', 'soft', 'edge', 'accent', 'good', 'bad', 'warn', 'other', 'grid'];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue('--' + name).trim()]));
};

// A kind of configuration is told by its shape too, not by colour alone.
const cross = 'path://M0 1L1 0L5 4L9 0L10 1L6 5L10 9L9 10L5 6L1 10L0 9L4 5Z';
const marks = (c) => ({
  passing: {symbol: 'circle', size: 9, style: {color: c.accent, borderColor: c.ground, borderWidth: 1}},
  refused: {symbol: 'triangle', size: 11, style: {color: c.ground, borderColor: c.warn, borderWidth: 2}},
  failed: {symbol: cross, size: 9, style: {color: c.bad}},
  usual: {symbol: 'rect', size: 11, style: {color: c.other, borderColor: c.ground, borderWidth: 1}},
  recommended: {symbol: 'diamond', size: 16, style: {color: c.good, borderColor: c.text, borderWidth: 1}},
});

// A series of marks of one kind; `points`: [{value: [x, y], text, of}], `of`: the configuration's number.
export const markSeries = (kind, points, c) => {
  const mark = marks(c)[kind];
  return {
    type: 'scatter', id: kind, symbol: mark.symbol, symbolSize: mark.size, itemStyle: {...mark.style, opacity: 1},
    z: kind === 'recommended' || kind === 'usual' ? 5 : 3,
    emphasis: {scale: 1.6, itemStyle: {borderColor: c.text, borderWidth: 2}},
    data: points.map((point) => ({value: point.value, text: point.text, of: point.of})),
  };
};
export const kinds = ['passing', 'refused', 'failed', 'usual', 'recommended'];

// One series for each kind that has points.
export const byKind = (points, c) => kinds.filter((kind) => points.some((point) => point.kind === kind))
  .map((kind) => markSeries(kind, points.filter((point) => point.kind === kind), c));

// Some room around values.
export const rangeOf = (values, fromZero) => {
  let low = Infinity, high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  if (!(low <= high)) return [0, 1];
  if (fromZero) low = Math.min(0, low);
  const room = high > low ? 0.05 * (high - low) : Math.abs(high) * 0.05 || 1;
  return [fromZero ? low : low - room, high + room];
};

export const shown = (value) => value === null || value === undefined ? '–'
  : Math.abs(value) >= 1e6 ? (value / 1e6).toFixed(2) + ' M'
  : Math.abs(value) >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString();
export const percent = (share) => (share >= 0 ? '+' : '') + (100 * share).toFixed(Math.abs(share) < 0.1 ? 2 : 1) + ' %';

// An axis of numbers.
export const valueAxis = (name, [min, max], c, across) => ({
  type: 'value', name, min, max, nameLocation: across ? 'middle' : 'end', nameGap: across ? 26 : 12,
  nameTextStyle: {color: c.text, align: across ? 'center' : 'left', fontSize: 12},
  axisLine: {show: true, onZero: false, lineStyle: {color: c.soft}}, axisTick: {show: across, lineStyle: {color: c.soft}},
  axisLabel: {color: c.soft, fontSize: 11, hideOverlap: true, showMinLabel: false, showMaxLabel: false},
  splitLine: {show: !across, lineStyle: {color: c.grid}},
});

// What all charts have. Text of others is only ever the content of a text node.
export const common = (c) => ({
  animation: false, backgroundColor: 'transparent', textStyle: {fontFamily: 'system-ui, sans-serif', color: c.text},
  tooltip: {
    trigger: 'item', confine: true, transitionDuration: 0, backgroundColor: c.panel, borderColor: c.soft, borderWidth: 1, padding: 8,
    textStyle: {color: c.text, fontSize: 13}, extraCssText: 'max-width:min(340px,80vw);white-space:normal;overflow-wrap:anywhere;box-shadow:none',
    formatter: (params) => {
      const box = document.createElement('div');
      for (const line of (params.data && params.data.text || params.name || '').split('\n'))
        box.appendChild(document.createElement('div')).textContent = line;
      return box;
    },
  },
});
export const plane = {left: 4, right: 18, top: 10, bottom: 2, outerBoundsMode: 'same', outerBoundsContain: 'all'};

// Zooming by the mouse; buttons zoom too.
export const zooms = (axes) => axes.map((axis) => ({type: 'inside', id: 'zoom-' + axis, [axis + 'AxisIndex']: 0, filterMode: 'none',
  zoomOnMouseWheel: 'ctrl', moveOnMouseWheel: false, moveOnMouseMove: true, preventDefaultMouseMove: false}));
