// Completion, colours of window clauses, dark colours and labels for an editor of queries.
import * as CM from "nicegui-codemirror";

const WINDOW_WORDS = /\b(?:STREAM|WINDOW|RANGE|STEP|SLIDE|TRIPLES|TUMBLING|SESSION|ELEMENTS|ISTREAM|DSTREAM|RSTREAM|MATCH|SEQ|WITHIN|EVENT|REGISTER|COMPUTED|EVERY)\b/gi;
const DECLARED = /\bPREFIX\s+([\w.-]*:)\s*<([^<>\s]*)>/gi;
const TOKEN = /(?:<[^<>\s]*|[?$]\w*|[\w.-]*:?[\w-]*)$/;
const NAME = /^\w[\w-]*$/;
const TYPES = { keyword: "keyword", function: "function", prefix: "namespace", stream: "interface", term: "property" };

/** Prefixes that the text declares, as [prefix with colon, IRI], the longest IRI first. */
function declaredIn(text) {
  const found = [...text.matchAll(DECLARED)].map((each) => [each[1], each[2]]);
  return found.sort((a, b) => b[1].length - a[1].length);
}

/** The IRI as a name by one of these prefixes; undefined if none fits. */
function shortened(iri, prefixes) {
  for (const [prefix, start] of prefixes) {
    if (start && iri.startsWith(start) && NAME.test(iri.slice(start.length))) return [prefix + iri.slice(start.length), prefix, start];
  }
}

/** Inserts a name, and above all the declaration of its prefix. */
function withDeclaration(name, prefix, iri) {
  return (view, completion, from, to) => {
    const line = `PREFIX ${prefix} <${iri}>\n`;
    view.dispatch({
      changes: [{ from: 0, insert: line }, { from, to, insert: name }],
      selection: { anchor: line.length + from + name.length },
      userEvent: "input.complete",
    });
  };
}

function iriOption(word, declared, known) {
  const option = { type: TYPES[word.kind], detail: word.kind === "stream" ? `stream ${word.detail}` : word.detail };
  const short = shortened(word.text, declared);
  if (short) return { ...option, label: short[0] };
  const other = shortened(word.text, known);
  if (other && !declared.some(([prefix]) => prefix === other[1])) {
    return { ...option, label: other[0], apply: withDeclaration(...other) };
  }
  return { ...option, label: `<${word.text}>` };
}

function completions(words) {
  const of = (kind) => words.filter((word) => word.kind === kind);
  const plain = (kind, boost) => of(kind).map((word) => ({ label: word.text, type: TYPES[kind], boost }));
  const [keywords, functions] = [plain("keyword", 1), plain("function", 0)];
  const [prefixes, streams, terms] = [of("prefix"), of("stream"), of("term")];
  const known = prefixes.map((word) => [word.text, word.iri]).sort((a, b) => b[1].length - a[1].length);

  return (context) => {
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    const token = TOKEN.exec(before)[0];
    if (/^[^"'<]*(?:#)/.test(before)) return null;
    const from = context.pos - token.length;
    const lead = before.slice(0, before.length - token.length);
    const text = context.state.doc.toString();
    const declared = declaredIn(text);
    const answer = (options) => (options.length ? { from, options, validFor: /^[?$<]?[\w:/.#-]*$/ } : null);
    if (/\bPREFIX\s+$/i.test(lead)) {
      const free = prefixes.filter((word) => !declared.some(([prefix]) => prefix === word.text));
      return answer(free.map((word) => ({ label: `${word.text} <${word.iri}>`, type: "namespace", detail: word.detail })));
    }
    const inWindow = /\b(?:STREAM|ON)\s+$/i.test(lead);
    if (!token && !context.explicit && !inWindow) return null;
    if (/^[?$]/.test(token)) {
      const names = new Set((text.slice(0, from) + text.slice(context.pos)).match(/[?$]\w+/g) ?? []);
      return answer([...names].map((label) => ({ label, type: "variable" })));
    }
    const named = streams.map((word) => ({ ...iriOption(word, declared, known), boost: 2 }));
    if (inWindow) return answer(named);
    const found = [...named, ...terms.map((word) => iriOption(word, declared, known))];
    if (token.startsWith("<")) {
      const whole = [...streams, ...terms].map((word) => [word.text, { label: `<${word.text}>`, type: TYPES[word.kind], detail: word.detail }]);
      return answer([...new Map(whole).values()]);
    }
    const undeclared = prefixes
      .filter((word) => !declared.some(([prefix]) => prefix === word.text) && word.text !== ":")
      .map((word) => ({ label: word.text, type: "namespace", detail: word.iri, apply: withDeclaration(word.text, word.text, word.iri) }));
    const unique = [...new Map(found.map((option) => [option.label, option])).values()];
    return answer([...keywords, ...functions, ...declared.map(([prefix]) => ({ label: prefix, type: "namespace" })), ...undeclared, ...unique]);
  };
}

/** Is there a comment or a string open at the end of this part of a line, or does a name go on? */
function isInside(before) {
  const code = before.replace(/<[^<>\s]*>|"[^"]*"|'[^']*'/g, "");
  return /[#"']|[:?$.\w-]$/.test(code);
}

const windowWords = (() => {
  const decorator = new CM.MatchDecorator({
    regexp: WINDOW_WORDS,
    decorate: (add, from, to, match, view) => {
      const line = view.state.doc.lineAt(from);
      if (!isInside(line.text.slice(0, from - line.from))) add(from, to, CM.Decoration.mark({ class: "cqels-window-word" }));
    },
  });
  return CM.ViewPlugin.fromClass(
    class {
      constructor(view) {
        this.decorations = decorator.createDeco(view);
      }
      update(update) {
        this.decorations = decorator.updateDeco(update, this.decorations);
      }
    },
    { decorations: (plugin) => plugin.decorations },
  );
})();

const setFault = CM.StateEffect.define();

/** The line of an error, and the word at its column. */
const fault = CM.StateField.define({
  create: () => CM.Decoration.none,
  update: (marks, transaction) => {
    const effect = transaction.effects.find((each) => each.is(setFault));
    return effect ? effect.value : marks.map(transaction.changes);
  },
  provide: (field) => CM.EditorView.decorations.from(field),
});

function faultAt(doc, number, column) {
  if (number < 1 || number > doc.lines) return CM.Decoration.none;
  const line = doc.line(number);
  const marks = [CM.Decoration.line({ class: "cqels-faulty-line" }).range(line.from)];
  if (column && line.length) {
    const start = Math.min(column, line.length) - 1;
    const word = /^[\p{L}\p{N}][\w:-]*/u.exec(line.text.slice(start));
    const end = start + (word ? word[0].length : 1);
    marks.push(CM.Decoration.mark({ class: "cqels-faulty" }).range(line.from + start, line.from + end));
  }
  return CM.Decoration.set(marks);
}

export default {
  template: `<span hidden></span>`,
  props: { editor: Number, words: Array },
  async mounted() {
    await this.$nextTick();
    const component = getElement(this.editor);
    const editor = await component.editorPromise;
    this.know(this.words);
    // One object for all calls: a source is known by its identity.
    const data = [{ autocomplete: (context) => this.completed(context) }];
    editor.dispatch({
      effects: CM.StateEffect.appendConfig.of([
        CM.EditorState.languageData.of(() => data),
        windowWords,
        fault,
        CM.EditorView.contentAttributes.of({ "aria-label": "Query text" }),
      ]),
    });
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.colour = () => component.setTheme(this.dark.matches ? "oneDark" : "basicLight");
    this.dark.addEventListener("change", this.colour);
    this.colour();
  },
  methods: {
    /** From now on these words complete. */
    know(words) {
      this.completed = completions(words);
    },
    /** Mark the place of an error, from 1; 0: none. In the browser alone, as an update of the editor would undo typing. */
    async mark(line, column, reveal) {
      const editor = await getElement(this.editor).editorPromise;
      const effects = [setFault.of(faultAt(editor.state.doc, line, column))];
      if (reveal && line >= 1 && line <= editor.state.doc.lines) {
        effects.push(CM.EditorView.scrollIntoView(editor.state.doc.line(line).from, { y: "nearest", yMargin: 40 }));
      }
      editor.dispatch({ effects });
    },
  },
  unmounted() {
    this.dark?.removeEventListener("change", this.colour);
  },
};
