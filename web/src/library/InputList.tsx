import { Link } from 'wouter';
import type { Schemas } from '../api/client';
import { useAccount } from '../data/account';
import { useTool } from '../data/catalog';
import { resultLink } from '../data/links';
import { leavesOf, mediaOf, type Value } from '../form/fields';
import { wordsOf } from '../form/summary';
import { text } from '../text/library';
import { Icon } from '../ui/Icon';
import styles from './Inspector.module.css';

/** InputList shows all inputs of a run, with the names that the tool's form has for them. */
export function InputList({ inputs, toolId }: { inputs: Schemas['Inputs']; toolId: string }) {
  const { teamId } = useAccount();
  const tool = useTool(toolId, teamId);
  const fields = new Map(leavesOf(tool.data?.fields ?? []).map((field) => [field.fieldKey, field]));
  const entries = Object.entries(inputs).filter(([, value]) => value !== null && value !== '');

  const show = (key: string, value: Schemas['InputValue']) => {
    const results = mediaOf(value as Value).filter((one) => one.kind === 'LIBRARY_REF');
    if (results.length > 0) {
      return results.map((one) => (
        <div key={one.id}>
          <Link href={resultLink(one.id, teamId)}>{text.resultInput}</Link>
        </div>
      ));
    }
    const field = fields.get(key);
    return field ? wordsOf(field, value as Value) : typeof value === 'object' ? JSON.stringify(value) : String(value);
  };

  return (
    <details className={styles.fold}>
      <summary>
        <Icon name="chevronRight" small />
        {text.allInputs}
        <span className="small soft num">{entries.length}</span>
      </summary>
      <dl className={styles.facts}>
        {entries.map(([key, value]) => (
          <div key={key} style={{ display: 'contents' }}>
            <dt>{fields.get(key)?.label ?? key}</dt>
            <dd>{show(key, value)}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
