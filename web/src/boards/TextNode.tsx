import type { NodeProps } from '@xyflow/react';
import { memo, useEffect, useRef, useState } from 'react';
import { text } from '../text/boards';
import { classes } from '../ui/classes';
import { useBoard } from './context';
import { usePainted } from './far';
import { type FlowNode, isDrawnSame } from './flow';
import { Grips } from './Grips';
import { Halo } from './Halo';
import { type BoardNode, isHeading, plainText } from './model';
import styles from './Node.module.css';

/** TextNode shows a text as a note, or as a heading. */
export const TextNode = memo(function TextNode({ id, data, selected }: NodeProps<FlowNode>) {
  const { editing } = useBoard();
  const { node } = data;
  const heading = isHeading(node);
  const painted = usePainted(node) && editing !== id;

  return (
    <div
      className={classes(
        styles.node,
        heading ? styles.heading : styles.memo,
        selected && styles.selected,
        painted && styles.painted,
      )}
    >
      {editing === id ? <TextEditor node={node} /> : <Words node={node} />}
      <Halo nodeKey={id} />
      {selected && editing !== id && <Grips nodeKey={id} widthOnly minWidth={80} />}
    </div>
  );
}, isDrawnSame);

/** SectionNode shows a frame with a heading. It is moved and selected at the heading. */
export const SectionNode = memo(function SectionNode({ id, data, selected }: NodeProps<FlowNode>) {
  const { editing } = useBoard();
  const { node } = data;
  const painted = usePainted(node) && editing !== id;

  return (
    <div className={classes(styles.node, styles.section, selected && styles.selected, painted && styles.painted)}>
      <div data-section-head className={styles.sectionHead}>
        {editing === id ? <TextEditor node={node} /> : <Words node={node} />}
      </div>
      <Halo nodeKey={id} />
      {selected && <Grips nodeKey={id} minWidth={160} minHeight={120} />}
    </div>
  );
}, isDrawnSame);

function Words({ node }: { node: BoardNode }) {
  const words = plainText(node);

  return <span className={classes(styles.words, !words && styles.unwritten)}>{words || text.textPlaceholder}</span>;
}

/** TextEditor is the input in place of a text. Each letter is kept at once; Escape and a click elsewhere end it. */
function TextEditor({ node }: { node: BoardNode }) {
  const { actions, session } = useBoard();
  const { editor } = session;
  const [words, setWords] = useState(node.text);
  const area = useRef<HTMLTextAreaElement>(null);
  const key = node.key;

  useEffect(() => {
    editor.startHold([key], ['text']);
    const element = area.current;
    element?.focus({ preventScroll: true });
    element?.setSelectionRange(element.value.length, element.value.length);
    return () => {
      editor.endHold();
      if (editor.node(key)?.text.trim() === '') {
        editor.remove([key]);
      }
    };
  }, [editor, key]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the height follows the text.
  useEffect(() => {
    const element = area.current;
    if (element) {
      element.style.height = '0';
      element.style.height = `${element.scrollHeight}px`;
    }
  }, [words]);

  return (
    <textarea
      ref={area}
      className={classes(styles.editor, 'nodrag', 'nowheel', 'nopan')}
      aria-label={text.edit}
      placeholder={`${text.textPlaceholder}. ${text.headingHint}`}
      maxLength={10_000}
      value={words}
      onChange={(event) => {
        setWords(event.target.value);
        editor.hold([[key, { text: event.target.value }]]);
      }}
      onKeyDown={(event) => {
        const done = event.key === 'Escape' || (event.key === 'Enter' && (event.ctrlKey || event.metaKey));
        if (done) {
          event.preventDefault();
          event.stopPropagation();
          actions.edit(undefined);
        }
      }}
      onBlur={() => actions.edit(undefined)}
    />
  );
}
