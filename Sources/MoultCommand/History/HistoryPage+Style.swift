internal import MoultPublish

extension HistoryPage {
    /// The style of the charts, in addition to the style of every page.
    static let style: Markup = """
        :root { --c0: #8a94a0; --c1: #0b6bcb; --c2: #b3372f; --c3: #1a7f5a; --c4: #7a5af0; --c5: #c77700; --c6: #5b6f00;
          --c7: #c2388f; --c8: #12838f; --c9: #55606c; --c10: #8f5a3c;
          --c11: #6b7a1f; }
        @media (prefers-color-scheme: dark) { :root { --c0: #7d8590; --c1: #4aa3ff; --c2: #ff7b72; --c3: #3fc492;
          --c4: #a58bff; --c5: #f0a63a; --c6: #a9c23f; --c7: #f778ba; --c8: #46c7d4; --c9: #a3adb8; --c10: #d09a78;
          --c11: #c3cf6e; } }
        .c0 { background: var(--c0); } .c1 { background: var(--c1); } .c2 { background: var(--c2); }
        .c3 { background: var(--c3); } .c4 { background: var(--c4); } .c5 { background: var(--c5); }
        .c6 { background: var(--c6); } .c7 { background: var(--c7); } .c8 { background: var(--c8); }
        .c9 { background: var(--c9); } .c10 { background: var(--c10); } .c11 { background: var(--c11); }
        .columns { display: flex; align-items: flex-end; gap: 2px; height: 9rem; margin-top: .9rem; overflow-x: auto;
          border-bottom: 1px solid var(--line); }
        .columns a { flex: 1 0 6px; max-width: 2.5rem; height: 100%; display: flex; align-items: flex-end;
          text-decoration: none; }
        .columns span { width: 100%; min-height: 2px; border-radius: 3px 3px 0 0; background: var(--p2);
          color: var(--card); text-align: center; overflow: visible; line-height: 1; }
        .columns .k0 span, .legend .k0 { background: var(--c1); }
        .columns .k1 span, .legend .k1 { background: repeating-linear-gradient(45deg, var(--c5) 0 3px, transparent 3px 6px), var(--card);
          border: 1px solid var(--c5); }
        .columns .k2 span, .legend .k2 { background: repeating-linear-gradient(0deg, var(--c4) 0 2px, transparent 2px 4px), var(--card);
          border: 1px solid var(--c4); }
        .columns .k3 span, .legend .k3 { background: repeating-linear-gradient(90deg, var(--c3) 0 2px, transparent 2px 4px), var(--card);
          border: 1px solid var(--c3); }
        .columns .k4 span, .legend .k4 { background: var(--c0); }
        .axis { display: flex; justify-content: space-between; margin: .3rem 0; font-size: .8rem; color: var(--dim); }
        .columns .removed span, .legend .removed { background: var(--removed); border: 0; }
        .time { display: flex; height: 1rem; margin: .8rem 0 .2rem; border-radius: 4px; overflow: hidden; }
        .time i { flex-basis: 0; min-width: 1px; }
        .time .next { margin-left: 4px; }
        .parts { width: auto; min-width: 60%; }
        .parts i { display: inline-block; width: .75em; height: .75em; border-radius: 2px; margin-right: .3em; }
        .legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .8rem; color: var(--dim); }
        .legend i { display: inline-block; width: .75em; height: .75em; border-radius: 2px; margin-right: .3em; }
        section { scroll-margin-top: .5rem; }

        """
}
