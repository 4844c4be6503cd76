"""The style sheet of the HTML view."""

from __future__ import annotations

STYLE = """
:root{
  --paper:#f7f6f2;--card:#fff;--ink:#1d2126;--soft:#5d6670;--line:#dfdcd3;--wash:#efede6;
  --full:#0f7b5f;--compressed:#b06a00;--stub:#7a4fc9;--dropped:#8a929b;--around:#2467b0;--critical:#c02c38;
  --full-bg:#e3f3ed;--compressed-bg:#fbeed8;--stub-bg:#eee7fb;--dropped-bg:#eceef0;--around-bg:#e3eefa;
  --critical-bg:#fbe4e5;
}
@media (prefers-color-scheme:dark){:root{
  --paper:#14171b;--card:#1c2026;--ink:#e7e9ec;--soft:#9aa4af;--line:#2d333b;--wash:#232930;
  --full:#4cc9a0;--compressed:#e8a94a;--stub:#b698f5;--dropped:#7d8792;--around:#6db0f5;--critical:#ff7d86;
  --full-bg:#12332a;--compressed-bg:#3a2a10;--stub-bg:#2b2145;--dropped-bg:#262b31;--around-bg:#152a40;
  --critical-bg:#431c20;
}}
*{box-sizing:border-box}
html{scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,
  "Helvetica Neue","Noto Sans",sans-serif;-webkit-text-size-adjust:100%}
header,main,footer{max-width:54rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:2.25rem}
.eyebrow{margin:0;color:var(--soft);font-size:.78rem;letter-spacing:.09em;text-transform:uppercase}
h1{margin:.15rem 0 1.1rem;font-size:1.7rem;line-height:1.2;font-weight:650;letter-spacing:-.012em;
  overflow-wrap:anywhere}
.question{margin:0 0 1.3rem;padding:.85rem 1.1rem;background:var(--around-bg);border-radius:.6rem;font-size:1.12rem;
  white-space:pre-wrap;overflow-wrap:anywhere}
.question span{display:block;color:var(--around);font-size:.74rem;font-weight:650;letter-spacing:.07em;
  text-transform:uppercase}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.4rem,1fr));gap:.6rem 1.4rem;margin:0 0 1.4rem}
.facts div{display:flex;flex-direction:column-reverse;justify-content:flex-end}
.facts dd{margin:0;font-size:1.35rem;font-weight:650;line-height:1.25;overflow-wrap:anywhere;
  font-variant-numeric:tabular-nums}
.facts dt{color:var(--soft);font-size:.82rem;line-height:1.35}
.bar{display:flex;gap:2px;height:1.15rem;border-radius:.4rem;overflow:hidden;background:var(--wash)}
.bar i{min-width:2px}
i.around{background:var(--around)}i.full{background:var(--full)}i.compressed{background:var(--compressed)}
i.stub{background:var(--stub)}i.free{background:repeating-linear-gradient(135deg,var(--wash) 0 5px,var(--line) 5px 6px)}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1.15rem;margin:.55rem 0 1.5rem;padding:0;list-style:none;color:var(--soft);
  font-size:.82rem;font-variant-numeric:tabular-nums}
.key i{display:inline-block;width:.7em;height:.7em;margin-right:.45em;border-radius:.15em;
  border:1px solid transparent}
.key i.free{border-color:var(--line)}
.key b{color:var(--ink);font-weight:600}
.map{margin:0 0 1.3rem}
.map figcaption{margin-bottom:.35rem;color:var(--soft);font-size:.82rem}
.map div{display:flex;align-items:flex-end;gap:1px;height:3.6rem;border-bottom:1px solid var(--line)}
.map a{flex:1 1 0;min-width:1px;border-radius:1px 1px 0 0;background:var(--dropped);opacity:.45}
.map a.full,.map a.compressed,.map a.stub{opacity:1}
.map a.full{background:var(--full)}.map a.compressed{background:var(--compressed)}.map a.stub{background:var(--stub)}
.map a:hover{opacity:.75}
.filters{display:flex;flex-wrap:wrap;align-items:center;gap:.5rem;margin:0 0 1.2rem;padding:.9rem 0 0;border:0;
  border-top:1px solid var(--line)}
.filters legend{float:left;margin-right:.35rem;padding:0;color:var(--soft);font-size:.85rem}
.chip{display:inline-flex;align-items:center;gap:.4rem;padding:.2rem .7rem .2rem .5rem;border-radius:1rem;
  font-size:.85rem;
  cursor:pointer;user-select:none}
.chip input{margin:0;accent-color:currentColor}
.chip b{font-weight:650}
.chip:has(:disabled){opacity:.45;cursor:default}
.chip.full,.badge.full{color:var(--full);background:var(--full-bg)}
.chip.compressed,.badge.compressed{color:var(--compressed);background:var(--compressed-bg)}
.chip.stub,.badge.stub{color:var(--stub);background:var(--stub-bg)}
.chip.dropped,.badge.dropped{color:var(--soft);background:var(--dropped-bg)}
.badge.around{color:var(--around);background:var(--around-bg)}
.badge.critical{color:var(--critical);background:var(--critical-bg)}
body:has(#show-full:not(:checked)) .turn.full,
body:has(#show-compressed:not(:checked)) .turn.compressed,
body:has(#show-stub:not(:checked)) .turn.stub,
body:has(#show-dropped:not(:checked)) .dropped:not(.chip){display:none}
.turn{margin:.6rem 0;padding:.7rem 1.05rem .6rem 1.15rem;background:var(--card);border:1px solid var(--line);
  border-left:4px solid var(--dropped);border-radius:.5rem;break-inside:avoid}
.turn.full{border-left-color:var(--full)}.turn.compressed{border-left-color:var(--compressed)}
.turn.stub{border-left-color:var(--stub)}.turn.around{border-left-color:var(--around)}
.turn:target{box-shadow:0 0 0 2px var(--around)}
.head{display:flex;flex-wrap:wrap;align-items:center;gap:.15rem .6rem;font-size:.86rem}
.head b{font-weight:650;overflow-wrap:anywhere}
.id{color:var(--soft);font-size:.78rem;text-decoration:none;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.id:hover{text-decoration:underline}
.badge{padding:.02rem .5rem;border-radius:.7rem;font-size:.74rem;font-weight:600;letter-spacing:.01em}
.cost{margin-left:auto;color:var(--soft);font-size:.8rem;font-variant-numeric:tabular-nums}
.score{width:4.6rem;height:.4rem;border-radius:.2rem;background:var(--wash);overflow:hidden}
.score i{display:block;height:100%;border-radius:.2rem;background:var(--soft)}
.full .score i{background:var(--full)}
.compressed .score i{background:var(--compressed)}.stub .score i{background:var(--stub)}
.words{margin:.3rem 0 .3rem;white-space:pre-wrap;overflow-wrap:anywhere}
.words del{color:var(--dropped);text-decoration-thickness:1px;text-decoration-color:var(--compressed)}
.stub-text{color:var(--stub);font:.9rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.dropped .words{color:var(--soft)}
details>summary{color:var(--soft);font-size:.8rem;cursor:pointer}
details>summary:hover{color:var(--ink)}
details table{margin:.35rem 0 .25rem 1rem;border-collapse:collapse;font-size:.8rem;font-variant-numeric:tabular-nums}
details th{padding:.05rem 1.3rem .05rem 0;color:var(--soft);font-weight:400;text-align:left}
details td{text-align:right}
.signal th::before{content:"signal, "}
.fold{margin:.6rem 0;padding:.38rem .9rem;border:1px dashed var(--line);border-radius:.5rem}
.fold>summary{font-size:.86rem;font-variant-numeric:tabular-nums}
.fold[open]>summary{margin-bottom:.4rem}
.date{display:flex;align-items:center;gap:.9rem;margin:1.5rem 0 .8rem;color:var(--soft);font-size:.82rem;
  font-weight:600}
.date::before,.date::after{content:"";flex:1;border-top:1px solid var(--line)}
footer{padding-top:1.2rem;padding-bottom:2.5rem;color:var(--soft);font-size:.78rem}
footer p{margin:.2rem 0}
@media (max-width:34rem){.score{display:none}h1{font-size:1.4rem}}
@media print{
  :root{--paper:#fff}
  body{font-size:10.5pt;-webkit-print-color-adjust:exact;print-color-adjust:exact}
  .filters{display:none}
  header,main,footer{max-width:none;padding-left:0;padding-right:0}
}
"""
