import { useState } from 'react';
import { text } from '../text/form';
import { Button } from '../ui/Button';
import { classes } from '../ui/classes';
import { Icon } from '../ui/Icon';
import { FieldInput } from './FieldInput';
import styles from './Form.module.css';
import { isAdvanced, leavesOf, type Node, type Value, type Values, valueIn } from './fields';
import { summarize } from './summary';
import type { Uploads } from './uploads';

type Props = {
  nodes: readonly Node[];
  values: Values;
  /** What is wrong with a field, by `fieldKey`. */
  problems: Record<string, string>;
  uploads: Uploads;
  onChange: (key: string, value: Value | ((before: Value) => Value)) => void;
  /** Shows advanced fields without a fold. */
  unfolded?: boolean;
};

/** Form shows the fields of a tool: groups with headings, and advanced fields below a fold. */
export function Form(props: Props) {
  const { nodes, unfolded } = props;
  const plain = nodes.filter((node) => !isAdvanced(node));
  const advanced = nodes.filter(isAdvanced);

  return (
    <>
      <Nodes {...props} nodes={plain} />
      {advanced.length > 0 && (unfolded ? <Nodes {...props} nodes={advanced} /> : <Fold {...props} nodes={advanced} />)}
    </>
  );
}

function Nodes({ nodes, ...rest }: Props) {
  return nodes.map((node) => {
    if (!node.isField) {
      return <Group key={node.uuid} label={node.label} {...rest} nodes={node.children} />;
    }
    return (
      <FieldInput
        key={node.uuid}
        field={node}
        value={valueIn(node, rest.values)}
        problem={rest.problems[node.fieldKey]}
        uploads={rest.uploads}
        onChange={(value) => rest.onChange(node.fieldKey, value)}
      />
    );
  });
}

/** Group is a part of a form with a heading of its own; its advanced fields have a fold of their own unless all are. */
function Group({ label, nodes, ...rest }: Props & { label: string }) {
  const all = nodes.every(isAdvanced);

  return (
    <fieldset className={styles.group}>
      <legend className={styles.legend}>{label}</legend>
      {all ? <Nodes {...rest} nodes={nodes} /> : <Form {...rest} nodes={nodes} />}
    </fieldset>
  );
}

/** Fold hides fields until it is opened, and says in a line what they hold. It opens by itself for a problem. */
function Fold(props: Props) {
  const { nodes, values, problems, onChange } = props;
  const [open, setOpen] = useState(false);
  const { changed, line } = summarize(nodes, values);
  const fields = leavesOf(nodes);
  const shown = open || fields.some((field) => problems[field.fieldKey]);

  const resetAll = () => {
    for (const field of fields) {
      onChange(field.fieldKey, undefined);
    }
  };

  return (
    <div className={styles.fold}>
      <div className={styles.foldHead}>
        <button type="button" className={styles.foldButton} aria-expanded={shown} onClick={() => setOpen(!shown)}>
          <span className={classes(styles.arrow, shown && styles.down)}>
            <Icon name="chevronRight" small />
          </span>
          <span>{text.more}</span>
          <span className={classes('small cut', changed > 0 ? styles.changed : 'soft')}>{line}</span>
        </button>
        {changed > 0 && (
          <Button kind="bare" small onClick={resetAll}>
            {text.resetAll}
          </Button>
        )}
      </div>
      {shown && (
        <div className={styles.folded}>
          <Nodes {...props} />
        </div>
      )}
    </div>
  );
}
