// SPDX-License-Identifier: Apache-2.0
#include "html_style.hpp"

namespace servetune {

const std::string_view html_style = R"css(
:root{color-scheme:light dark;--ground:#fff;--panel:#f5f7f9;--text:#1b1f24;--soft:#515a64;--edge:#c9d1d9;
--accent:#0b5cad;--good:#1a6e33;--bad:#b3261e;--warn:#8a5a00;--other:#6b4fa0;--grid:#e4e8ec}
@media (prefers-color-scheme:dark){:root{--ground:#14171c;--panel:#1d2229;--text:#e6e9ee;--soft:#a9b3be;--edge:#3b434d;
--accent:#6cb2ff;--good:#5fd07f;--bad:#ff8f85;--warn:#f0b849;--other:#c3a6ff;--grid:#2a3038}}
*{box-sizing:border-box}
body{margin:0;overflow-wrap:break-word;background:var(--ground);color:var(--text);font:16px/1.5 system-ui,sans-serif}
main,header,footer{max-width:1080px;margin:0 auto;padding:0 16px}
h1{font-size:1.35rem;margin:20px 0 4px}h2{font-size:1.2rem;margin:36px 0 8px}h3{font-size:1rem;margin:20px 0 6px}
p{margin:6px 0;max-width:75ch}
a{color:var(--accent)}
.skip{position:absolute;left:-999px}.skip:focus{left:8px;top:8px;background:var(--ground);padding:6px}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 16px;padding:0;margin:12px 0}
.soft{color:var(--soft)}
.live{border:1px solid var(--edge);border-radius:6px;background:var(--panel);padding:6px 12px;margin:8px 0;overflow-wrap:anywhere}
.live p{margin:0;max-width:none}#live-now{color:var(--soft);min-height:1.5em}
.verdict{border:1px solid var(--edge);border-left:6px solid var(--accent);border-radius:6px;background:var(--panel);padding:12px 16px;
margin:12px 0}
.verdict.recommended{border-left-color:var(--good)}.verdict.inconclusive{border-left-color:var(--warn)}
.verdict.nothing_passes{border-left-color:var(--bad)}
.verdict strong{font-size:1.25rem}
pre{background:var(--panel);border:1px solid var(--edge);border-radius:6px;padding:10px;overflow-x:auto;white-space:pre-wrap;
overflow-wrap:anywhere;font:14px/1.45 ui-monospace,monospace;margin:8px 0}
code{font:0.92em ui-monospace,monospace;overflow-wrap:anywhere}
button,select,input{font:inherit;color:var(--text);background:var(--ground);border:1px solid var(--soft);border-radius:5px;padding:3px 10px}
select,input{max-width:100%}button{cursor:pointer}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
dl.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(180px,45%),1fr));gap:8px;margin:12px 0}
dl.facts div{border:1px solid var(--edge);border-radius:6px;padding:8px 12px}
dt{color:var(--soft);font-size:.85rem}dd{margin:0;overflow-wrap:anywhere;font-weight:600}dd.plain{font-weight:400;margin-bottom:8px}
figure{margin:10px 0;border:1px solid var(--edge);border-radius:6px;padding:8px}
figure>svg{display:block;width:100%;height:auto}figure>svg.off{display:none}
figure.drawn>svg,figure.drawn>.intervals,.only-library{display:none}figure.drawn .only-library{display:inline}
.chart{max-width:100%}.chart>div{width:100%}.chart-said{color:var(--soft);font-size:.9rem;min-height:1.5em;margin:0;max-width:none}
figure .tools{margin:0 0 4px}.chart-tools button{min-width:34px;min-height:30px}
.intervals th{font-weight:400;text-align:left;overflow-wrap:anywhere;width:34%}.intervals th,.intervals td{border:0;padding:0 8px}
.intervals td:nth-child(2){width:40%;min-width:180px;padding:0}.intervals td svg{display:block;width:100%;height:24px}
.intervals .line,.intervals .dot,.intervals .grid,.intervals .axis{vector-effect:non-scaling-stroke;fill:none;stroke:var(--soft)}
.intervals .grid{stroke:var(--grid)}.intervals .line{stroke-width:2.5}.intervals .dot{stroke-width:10;stroke-linecap:round}
.intervals .recommended path.line,.intervals .recommended .dot,.intervals .better path.line,.intervals .better .dot{stroke:var(--good)}
.intervals .worse path.line,.intervals .worse .dot{stroke:var(--bad)}
.scale td{position:relative;height:1.3em;color:var(--soft);font-size:.8rem}.scale span{position:absolute;white-space:nowrap;transform:translateX(-50%)}
figcaption{color:var(--soft);font-size:.9rem;margin-top:4px}
figure>svg text{fill:var(--text);font:12px system-ui,sans-serif}
figure>svg .tick{fill:var(--soft);font-size:11px}
figure>svg .halo{paint-order:stroke;stroke:var(--ground);stroke-width:3px}
figure>svg .grid{stroke:var(--grid);fill:none}figure>svg .axis{stroke:var(--soft);fill:none}
figure>svg .line{fill:none;stroke:var(--soft);stroke-width:1.5}
figure>svg .line.best,figure>svg .line.front{stroke:var(--good);stroke-width:2.5}
figure>svg .line.usual{stroke:var(--other)}figure>svg .line.even{stroke-dasharray:5 4}
figure>svg .mark{fill:var(--accent);stroke:var(--ground);stroke-width:1}
figure>svg .mark.refused{fill:var(--ground);stroke:var(--warn);stroke-width:2}
figure>svg .mark.failed{fill:none;stroke:var(--bad);stroke-width:2}
figure>svg .mark.usual{fill:var(--other)}
figure>svg .mark.recommended{fill:var(--good);stroke:var(--text)}
figure>svg .bar{fill:var(--accent)}figure>svg .bar.failed{fill:var(--bad)}
figure>svg .thread{stroke:var(--accent)}figure>svg .thread.failed{stroke:var(--bad);stroke-dasharray:4 3}
figure>svg .thread.recommended{stroke:var(--good);stroke-width:4}figure>svg .thread.usual{stroke:var(--other);stroke-width:3}
figure>svg .thread.chosen{stroke:var(--warn);stroke-width:5;opacity:1!important}
.wide{overflow-x:auto;border:1px solid var(--edge);border-radius:6px;max-height:75vh;overflow-y:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem}
caption{text-align:left;padding:6px 10px;color:var(--soft)}
th,td{padding:4px 10px;border-bottom:1px solid var(--edge);text-align:right;vertical-align:top;white-space:nowrap}
th:first-child,td:first-child,td.text,th.text{text-align:left;white-space:normal;min-width:34ch;overflow-wrap:break-word}
thead th{white-space:normal;min-width:9ch}
thead th{position:sticky;top:0;background:var(--panel)}
th button{border:0;background:none;padding:0;font-weight:600;text-align:inherit}
th[aria-sort=ascending] button::after{content:" \25B2"}th[aria-sort=descending] button::after{content:" \25BC"}
tr.recommended td{font-weight:600}tr.chosen td{background:var(--panel);box-shadow:inset 4px 0 0 var(--warn)}
.broken{color:var(--bad);font-weight:600}.good{color:var(--good);font-weight:600}
details{border:1px solid var(--edge);border-radius:6px;padding:6px 12px;margin:8px 0}summary{cursor:pointer}
.tools label{max-width:100%}.tools{display:flex;flex-wrap:wrap;gap:8px 16px;align-items:center;margin:8px 0}
ul.key{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;padding:0;margin:6px 0;font-size:.9rem}
.swatch{display:inline-block;width:12px;height:12px;border-radius:6px;margin-right:5px;background:var(--accent)}
.swatch.recommended{background:var(--good);border-radius:0;transform:rotate(45deg) scale(.85)}
.swatch.usual{background:var(--other);border-radius:0}
.swatch.refused{border-radius:0;background:var(--warn);clip-path:polygon(50% 0,100% 100%,0 100%)}.swatch.failed{background:none;color:var(--bad)}
.swatch.failed::before{content:"\00d7";font-weight:700;line-height:12px}
.three{display:grid;grid-template-columns:repeat(auto-fit,minmax(260px,1fr));gap:12px}
.three section{border:1px solid var(--edge);border-radius:6px;padding:4px 14px 10px}
footer{margin:40px auto;overflow-wrap:anywhere;color:var(--soft);font-size:.9rem}
.only-script{display:none}.has-script .only-script{display:flex}
@media screen and (max-width:640px){figure>svg text{font-size:22px}figure>svg .tick{font-size:20px}figure{padding:8px 4px}
.intervals tr{display:grid;grid-template-columns:3fr 2fr;align-items:center;padding:4px 0}.intervals th{grid-column:1/3;width:auto}
.intervals td:nth-child(2){width:auto;min-width:0}.intervals td{white-space:normal}.scale{display:none!important}
th:first-child,td:first-child,td.text,th.text{min-width:22ch}
.has-script .wide thead tr{display:flex;flex-wrap:wrap}.has-script .wide thead th{position:static;min-width:0;text-align:left}
.has-script .wide thead th:first-child{min-width:0}.has-script .wide table:not(.sortable) thead{position:absolute;left:-999px}
.has-script .wide tbody tr:not([hidden]){display:block;border-bottom:2px solid var(--edge);padding:6px 0}
.has-script .wide td,.has-script .wide tbody th{display:flex;justify-content:space-between;gap:12px;border:0;padding:2px 10px;
white-space:normal;min-width:0;overflow-wrap:anywhere;text-align:right}
.has-script .wide td::before{content:attr(data-title);color:var(--soft);text-align:left;overflow-wrap:normal}}
@media print{:root{color-scheme:light;--ground:#fff;--panel:#fff;--text:#000;--soft:#333;--edge:#999;--accent:#0b5cad;--good:#1a6e33;
--bad:#b3261e;--warn:#8a5a00;--other:#6b4fa0;--grid:#ddd}
body{font-size:11pt}nav,.live,.tools,.has-script .only-script{display:none}.wide{max-height:none;overflow:visible}
figure,.verdict,tr,dl.facts div{break-inside:avoid}.swatch{print-color-adjust:exact}ul.key{break-after:avoid}
.chart,.chart-said,.data,footer details{display:none}
figure.drawn>svg{display:block;max-height:22cm}figure.drawn>svg.off{display:none}figure.drawn>.intervals{display:table}
figure.drawn .only-library{display:none}h2,h3{break-after:avoid}
table{font-size:8pt}thead th{position:static}th,td{padding:2px 5px;white-space:normal}
th:first-child,td:first-child,td.text,th.text{min-width:0}}
)css";

}  // namespace servetune
