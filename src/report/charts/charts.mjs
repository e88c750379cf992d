// SPDX-License-Identifier: Apache-2.0
// The charts of the report page by Apache ECharts. The page's own program (src/report/html_script.cpp) calls `show` each
// time that its content is new, and draws SVG where this is missing.
import {use} from 'echarts/core';
import {BarChart, CustomChart, LineChart, ParallelChart, ScatterChart} from 'echarts/charts';
import {DataZoomInsideComponent, GridComponent, ParallelComponent, TooltipComponent} from 'echarts/components';
import {LabelLayout} from 'echarts/features';
import {SVGRenderer} from 'echarts/renderers';

import {effects} from './effects.mjs';
import {latency} from './latency.mjs';
import {parallel} from './parallel.mjs';
import {cost, path} from './path.mjs';
import {trade} from './trade.mjs';

use([BarChart, CustomChart, LineChart, ParallelChart, ScatterChart, DataZoomInsideComponent, GridComponent, ParallelComponent, TooltipComponent,
  LabelLayout, SVGRenderer]);

const makers = {
  'path-trial': (figure, page, kept) => path(figure, page, kept, false),
  'path-time': (figure, page, kept) => path(figure, page, kept, true),
  cost, effects, latency, parallel, trade,
};
const kept = {};  // what a person has zoomed, chosen and pointed at, from one content to the next
let frames = [];
let renewing = false;

const show = (of) => {
  // The table shows what one chart has chosen; a choice in another chart takes its place.
  const keep = (numbers, chart) => {
    frames.forEach((frame) => { if (frame !== chart) frame.cleared(); });
    of.keep(numbers);
  };
  const page = {...of, keep, renewing: () => renewing};
  frames.forEach((frame) => frame.end());
  frames = [];
  for (const [name, make] of Object.entries(makers)) {
    const figure = document.querySelector(`figure[data-chart="${name}"]`);
    if (!figure) continue;
    try {
      frames.push(make(figure, page, kept[name] = kept[name] || {}));
    } catch (error) {  // this figure keeps its drawing, the others and the page go on
      console.error(`the chart ${name}: ${error}`);
    }
  }
};
const cleared = () => frames.forEach((frame) => frame.cleared());
const chosen = (of) => frames.forEach((frame) => frame.show(of));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => frames.forEach((frame) => frame.redraw()));

// Of a page that renews itself: between these two the content is replaced, which nobody has asked for.
const renewal = () => { renewing = true; };
const renewed = () => { renewing = false; };

window.servetuneCharts = {show, chosen, cleared, renewal, renewed};
