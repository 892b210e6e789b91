import { useState } from 'react';
import type { Tool } from '../data/catalog';
import { text } from '../text/people';
import { Checks } from '../ui/Checks';
import { SearchInput } from '../ui/Field';
import styles from './RoleMatrix.module.css';

type Props = { label: string; tools: Tool[]; chosen: string[]; onChange: (chosen: string[]) => void };

/** ToolChoice chooses any number of tools; chosen tools that the person cannot see stay, with their ids. */
export function ToolChoice({ label, tools, chosen, onChange }: Props) {
  const [query, setQuery] = useState('');
  const unseen = chosen.filter((id) => !tools.some((tool) => tool.id === id));
  const all = [...tools.map(({ id, name }) => ({ id, name })), ...unseen.map((id) => ({ id, name: id }))];
  const found = all.filter((tool) => tool.name.toLowerCase().includes(query.trim().toLowerCase()));

  return (
    <div className={styles.tools}>
      {all.length > 8 && (
        <SearchInput label={text.toolsFind} value={query} onChange={(event) => setQuery(event.target.value)} />
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable with the keyboard. */}
      <div role="group" className={styles.list} aria-label={label} tabIndex={0}>
        {found.length === 0 && <p className="small soft">{text.toolsNone}</p>}
        <Checks
          options={found.map((tool) => ({ value: tool.id, label: tool.name }))}
          chosen={chosen}
          onChange={onChange}
        />
      </div>
    </div>
  );
}
