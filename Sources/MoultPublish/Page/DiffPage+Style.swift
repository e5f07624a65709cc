extension DiffPage {
    /// The style sheet: the system's font, its light or dark colours, and a single column that fits on a phone.
    static let style: Markup = """
        :root { --back: #f6f7f9; --card: #fff; --ink: #1c2128; --dim: #656d76; --line: #d8dee4; --code: #f0f2f5;
          --added: #1a7f37; --removed: #c1232e; --changed: #8a5a00; --p0: #e4e8ec; --p1: #a9c9f5; --p2: #4d8fe0; --p3: #0b4fa8; }
        @media (prefers-color-scheme: dark) { :root { --back: #0d1117; --card: #161b22; --ink: #e2e8ef; --dim: #8d96a0;
          --line: #2f3640; --code: #21262d; --added: #46c05a; --removed: #ff7b72; --changed: #dba53a;
          --p0: #262c34; --p1: #1f4a80; --p2: #3b82d8; --p3: #a5cfff; } }
        * { box-sizing: border-box; }
        body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1rem 3rem; background: var(--back); color: var(--ink);
          font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
        h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; }
        h2 { margin: 0; font-size: 1.2rem; display: flex; flex-wrap: wrap; gap: .3rem .7rem; align-items: center; }
        h3 { margin: 1.4rem 0 .5rem; font-size: .8rem; letter-spacing: .05em; text-transform: uppercase; color: var(--dim); }
        h4 { margin: 1rem 0 .4rem; font-size: .95rem; }
        p { margin: .4rem 0; }
        code, del, ins, .rows td { font: .9em ui-monospace, monospace; }
        code { background: var(--code); border-radius: 4px; padding: .1em .35em; }
        td code { background: none; padding: 0; font-size: 1em; }
        i { font-style: normal; color: var(--dim); }
        .was, .to, .dim, .paths, .tiles .none, .tiles .none b { color: var(--dim); font-weight: normal; }
        .paths { font-size: .85rem; }
        .note { border-left: 3px solid var(--changed); padding-left: .7rem; }
        .tiles { list-style: none; margin: 1.2rem 0; padding: 0; display: grid; gap: .7rem;
          grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); }
        .tiles li, section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
        .tiles li { padding: .7rem 1rem; font-size: .85rem; color: var(--dim); }
        .tiles b { display: block; font-size: 1.5rem; line-height: 1.3; color: var(--ink); font-variant-numeric: tabular-nums; }
        section { padding: 1.1rem 1.2rem 1.3rem; margin: 0 0 1rem; }
        .badge { font-size: .75rem; font-weight: normal; border: 1px solid; border-radius: 2em; padding: .1em .7em; }
        .badge.same { color: var(--dim); }
        .added, .tiles .added b { color: var(--added); } .removed, .tiles .removed b { color: var(--removed); }
        .changed, .tiles .changed b { color: var(--changed); }
        .schema { list-style: none; margin: 0; padding: 0; }
        .schema li { color: var(--ink); padding: .25rem 0 .25rem 1.4rem; position: relative; }
        .schema li::before { position: absolute; left: .2rem; font: bold 1em ui-monospace, monospace; }
        .schema .added::before { content: "+"; color: var(--added); }
        .schema .removed::before { content: "−"; color: var(--removed); }
        .schema .changed::before { content: "~"; color: var(--changed); }
        del { color: var(--removed); } ins { color: var(--added); text-decoration: none; }
        .wide { overflow-x: auto; margin: 0 -1.2rem; padding: 0 1.2rem; overflow-wrap: normal; }
        table { border-collapse: collapse; width: 100%; }
        .counts th, .counts td { white-space: nowrap; }
        .counts th:first-child { position: sticky; left: 0; background: var(--card); }
        .rows { width: auto; min-width: 40%; }
        th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); }
        thead th { font-size: .8rem; font-weight: normal; color: var(--dim); white-space: nowrap; }
        tbody tr:last-child > * { border-bottom: 0; }
        .n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
        .rows td { max-width: 26rem; min-width: 3rem; overflow-wrap: break-word; }
        .rows .long { min-width: 15rem; }
        .rows .key { font-weight: bold; white-space: nowrap; }
        .both del, .both ins { display: block; font-size: 1em; }
        .share { display: flex; align-items: center; gap: .6rem; white-space: nowrap; font-variant-numeric: tabular-nums; }
        .bar { width: 6rem; height: .5rem; border-radius: 4px; background: var(--p0); overflow: hidden; }
        .bar > span { display: flex; height: 100%; } .bar i { min-width: 2px; background: currentColor; }
        .bar .added { color: var(--added); } .bar .removed { color: var(--removed); } .bar .changed { color: var(--changed); }
        details { margin-top: 1.4rem; border-top: 1px solid var(--line); padding-top: .9rem; }
        summary { cursor: pointer; font-weight: bold; }
        .map { display: block; width: 100%; max-width: 46rem; margin: .7rem 0; }
        .p0 { fill: var(--p0); background: var(--p0); } .p1 { fill: var(--p1); background: var(--p1); }
        .p2 { fill: var(--p2); background: var(--p2); } .p3 { fill: var(--p3); background: var(--p3); }
        .pn { fill: var(--added); background: var(--added); }
        .legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .8rem; color: var(--dim); }
        .legend i { display: inline-block; width: .75em; height: .75em; margin-right: .45em; border-radius: 2px; }
        @media (max-width: 40rem) { body { padding: 1rem .6rem 2rem; font-size: 14px; } section { padding: 1rem; }
          .wide { margin: 0 -1rem; padding: 0 1rem; } .tiles { grid-template-columns: 1fr 1fr; } .bar { width: 3.5rem; }
          .tiles b { font-size: 1.25rem; } }
        @media print { body { background: none; max-width: none; } section { break-inside: avoid-page; } }

        """
}
