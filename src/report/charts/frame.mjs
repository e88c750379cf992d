// SPDX-License-Identifier: Apache-2.0
// A chart in its figure: as wide as the figure, in the colours of the moment, for mouse, keys and screen readers. The
// figure's own drawing stays for paper.
import {init} from 'echarts/core';

import {colours} from './look.mjs';

const narrowBelow = 560;  // pixels
const keysText = 'Arrow keys go from mark to mark; Enter marks the configuration in the table';
const zoomText = '; plus, minus and 0 zoom';

// `draw(colours, narrow)` gives {option, points, height, zoom, label}: points: [{series, index, text, of}] in the order in which
// keys walk over them; `of`: a configuration or undefined; zoom: the axes that can be zoomed. Kept: what a person has zoomed and
// points at, from one drawing to the next. `after` is called after each drawing, `cleared` where the table no longer shows what
// was chosen here.
export class Frame {
  constructor(figure, name, page, kept, draw) {
    Object.assign(this, {figure, name, page, draw, kept, at: -1, points: [], parts: null, chart: null, after: () => {}, cleared: () => {}});
    this.box = document.createElement('div');
    Object.assign(this.box, {className: 'chart', id: 'chart-' + name, tabIndex: 0});
    this.box.setAttribute('role', 'application');  // a screen reader leaves its keys to the chart; a table says the same
    this.box.setAttribute('aria-roledescription', 'chart');
    this.place = this.box.appendChild(document.createElement('div'));
    this.place.setAttribute('aria-hidden', 'true');
    this.said = document.createElement('p');
    this.said.className = 'chart-said';
    this.said.setAttribute('role', 'status');
    this.say(kept.said || '');
    figure.prepend(this.box, this.said);
    this.box.addEventListener('keydown', (event) => this.key(event));
    this.box.addEventListener('focus', () => {
      if (this.box.matches(':focus-visible') && !page.renewing()) this.say(keysText + (this.parts && this.parts.zoom ? zoomText : '') + '.');
    });
    this.box.addEventListener('blur', () => { if (!page.renewing()) this.leave(); });
    this.place.addEventListener('mousemove', (event) => {
      const place = this.place.getBoundingClientRect();
      kept.pointer = [event.clientX - place.x, event.clientY - place.y];
    });
    this.place.addEventListener('mouseleave', () => { if (!page.renewing()) kept.pointer = null; });
    // A finger moves the page and not the chart; what it taps arrives as a click of a mouse.
    for (const event of ['touchstart', 'touchmove', 'touchend', 'touchcancel'])
      this.place.addEventListener(event, (one) => one.stopPropagation(), {capture: true, passive: true});
    // In the next frame: what is drawn changes the size that is observed.
    this.watch = new ResizeObserver(() => requestAnimationFrame(() => this.fit()));
    this.watch.observe(this.box);
  }

  // The first time with a width it is drawn; later it only changes its size, or its layout.
  fit() {
    const width = this.box.clientWidth;
    if (width === 0 || this.ended) return;  // hidden, or on paper
    if (!this.chart || (width < narrowBelow) !== this.narrow) this.redraw();
    else this.chart.resize();
  }

  redraw() {
    const width = this.box.clientWidth;
    if (width === 0) return;
    this.narrow = width < narrowBelow;
    this.parts = this.draw(colours(), this.narrow);
    this.points = this.parts.points;
    this.at = -1;
    this.place.style.height = this.parts.height + 'px';
    if (!this.chart) {
      this.chart = init(this.place, null, {renderer: 'svg'});
      this.chart.on('click', (event) => { if (event.data && event.data.of !== undefined) this.page.choose(event.data.of); });
      this.chart.on('datazoom', () => { this.kept.zoom = this.zoomed(); });
    }
    this.chart.resize();
    this.chart.setOption(this.parts.option, {notMerge: true});
    this.box.setAttribute('aria-label', this.parts.label);
    this.figure.classList.add('drawn');
    if (this.parts.zoom && !this.buttons) this.addButtons();
    const shows = this.parts.label.replace(/\d+/g, '#');  // a trial more is the same chart
    if (this.kept.zoom && this.kept.shows === shows) this.zoomTo(this.kept.zoom);
    else this.kept.zoom = null;
    this.kept.shows = shows;
    this.after();
    const marked = this.kept.mark === undefined ? -1 : this.points.findIndex((point) => keyOf(point) === this.kept.mark);
    if (marked >= 0 && document.activeElement === this.box) this.go(marked);
    else if (this.kept.pointer) this.chart.dispatchAction({type: 'showTip', x: this.kept.pointer[0], y: this.kept.pointer[1]});
  }

  addButtons() {
    this.buttons = document.createElement('div');
    this.buttons.className = 'tools chart-tools';
    const add = (text, label, action) => {
      const button = this.buttons.appendChild(document.createElement('button'));
      Object.assign(button, {type: 'button', textContent: text});
      button.setAttribute('aria-label', label);
      button.addEventListener('click', action);
    };
    add('+', 'zoom in', () => this.zoomBy(0.6));
    add('−', 'zoom out', () => this.zoomBy(1 / 0.6));
    add('All', 'show all', () => this.zoomTo(null));
    this.box.before(this.buttons);
  }
  zoomed() {
    return (this.chart.getOption().dataZoom || []).map((one) => [one.start, one.end]);
  }
  zoomTo(ranges) {
    (this.parts.zoom || []).forEach((axis, i) => {
      const [start, end] = ranges && ranges[i] || [0, 100];
      this.chart.dispatchAction({type: 'dataZoom', dataZoomIndex: i, start, end});
    });
  }
  zoomBy(factor) {
    const point = this.points[this.at];
    const centres = point && point.value ? this.placesOf(point.value) : null;
    this.zoomTo(this.zoomed().map(([start, end], i) => {
      const width = Math.min(100, (end - start) * factor);
      const from = Math.max(0, Math.min(100 - width, (centres ? centres[i] : (start + end) / 2) - width / 2));
      return [from, from + width];
    }));
  }
  // Where a point is on the zoomed axes, in hundredths of each.
  placesOf(value) {
    return this.parts.zoom.map((axis) => {
      const {min, max} = this.parts.option[axis + 'Axis'];
      return 100 * (value[axis === 'x' ? 0 : 1] - min) / (max - min);
    });
  }

  say(text) {
    this.kept.said = text;
    if (this.said.textContent !== text) this.said.textContent = text;
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.chart) return;
    const last = this.points.length - 1;
    const steps = {ArrowRight: () => Math.min(last, this.at + 1), ArrowDown: () => Math.min(last, this.at + 1),
      ArrowLeft: () => Math.max(0, this.at - 1), ArrowUp: () => Math.max(0, this.at - 1), Home: () => 0, End: () => last};
    const zoom = {'+': 0.6, '=': 0.6, '-': 1 / 0.6};
    if (steps[event.key] && last >= 0) this.go(steps[event.key]());
    else if (event.key === 'Enter' && this.at >= 0 && this.points[this.at].of !== undefined) {
      this.page.choose(this.points[this.at].of);
      this.say(this.points[this.at].text.replaceAll('\n', ', ') + '. Marked in the table.');
    } else if (this.parts.zoom && zoom[event.key]) this.zoomBy(zoom[event.key]);
    else if (this.parts.zoom && event.key === '0') this.zoomTo(null);
    else if (event.key === 'Escape') this.leave();
    else return;
    event.preventDefault();
  }
  go(at) {
    this.leave();
    this.at = at;
    const point = this.points[at];
    this.kept.mark = keyOf(point);
    const place = {seriesId: point.series, dataIndex: point.index};
    this.chart.dispatchAction({type: 'highlight', ...place});
    if (point.value) this.chart.dispatchAction({type: 'showTip', ...this.seriesOf(point)});  // beside a mark; a line has no place
    this.say(`${at + 1} of ${this.points.length}: ${point.text.replaceAll('\n', ', ')}`);
  }
  seriesOf(point) {
    return {seriesIndex: this.parts.option.series.findIndex((one) => one.id === point.series), dataIndex: point.index};
  }
  leave() {
    if (!this.chart) return;
    if (this.at >= 0) {
      const point = this.points[this.at];
      this.chart.dispatchAction({type: 'downplay', seriesId: point.series, dataIndex: point.index});
    }
    this.chart.dispatchAction({type: 'hideTip'});
    this.at = -1;
    this.kept.mark = undefined;
  }

  // A configuration that was chosen elsewhere.
  show(of) {
    if (!this.chart) return;
    for (const point of this.points)
      if (point.of === this.shown || point.of === of)
        this.chart.dispatchAction({type: point.of === of ? 'highlight' : 'downplay', seriesId: point.series, dataIndex: point.index});
    this.shown = of;
  }

  end() {
    this.ended = true;
    this.watch.disconnect();
    if (this.chart) this.chart.dispose();
  }
}

// What a point is called in this drawing and in the next one.
const keyOf = (point) => point.key || point.text.split('\n')[0];

// The points of series of marks, in an order.
export const pointsOf = (series, order) => series.flatMap((one) => one.type !== 'scatter' ? []
  : one.data.map((data, index) => ({series: one.id, index, text: data.text, of: data.of, value: data.value, key: data.key}))).sort(order);
