import { useMemo, useState } from 'react';
import { text } from '../text/create';
import { Button } from '../ui/Button';
import { Chip, Tag } from '../ui/Chip';
import { classes } from '../ui/classes';
import { Dialog } from '../ui/Dialog';
import { SearchInput } from '../ui/Field';
import { Bone, Empty, Waiting } from '../ui/States';
import { useAccount } from './account';
import { type Tool, useKits, useTools } from './catalog';
import { ErrorFault } from './ErrorFault';
import styles from './ToolPicker.module.css';
import { ToolPicture } from './ToolPicture';
import { filterTools, tagsOf } from './toolfilter';

type Props = { chosen: string | undefined; onChoose: (toolId: string) => void; onClose: () => void };

/** ToolPicker is a dialog with all tools: by words, by collection, by tag. */
export default function ToolPicker({ chosen, onChoose, onClose }: Props) {
  const { teamId } = useAccount();
  const tools = useTools(teamId);
  const kits = useKits(teamId);
  const [query, setQuery] = useState('');
  const [kitId, setKitId] = useState<string>();
  const [tags, setTags] = useState<string[]>([]);

  const kit = kits.data?.find((one) => one.id === kitId);
  const listed = useMemo(() => (kit ? kit.tools.map((entry) => entry.tool) : (tools.data ?? [])), [kit, tools.data]);
  const found = useMemo(() => filterTools(listed, query, tags), [listed, query, tags]);
  const labels = new Map(kit?.tools.map((entry) => [entry.tool.id, entry.labels]));
  const toggle = (tag: string) => setTags(tags.includes(tag) ? tags.filter((one) => one !== tag) : [...tags, tag]);

  return (
    <Dialog open onClose={onClose} title={text.pickerTitle} kind="wide">
      <div className={styles.head}>
        <SearchInput
          label={text.pickerSearch}
          value={query}
          ref={focusFirst}
          onChange={(event) => setQuery(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && found[0]) {
              // The key must not press the button that gets the focus back.
              event.preventDefault();
              onChoose(found[0].id);
            }
          }}
        />
        {(kits.data?.length ?? 0) > 0 && (
          <div role="tablist" aria-label={text.pickerKits} className={styles.tabs}>
            {[{ id: undefined, label: text.pickerAll }, ...(kits.data ?? [])].map((one) => (
              <button
                key={one.id ?? ''}
                type="button"
                role="tab"
                aria-selected={one.id === kitId}
                className={styles.tab}
                onClick={() => setKitId(one.id)}
              >
                {one.label}
              </button>
            ))}
          </div>
        )}
        {kit?.description && <p className="small soft">{kit.description}</p>}
        <div role="group" aria-label={text.pickerTags} className={styles.tags}>
          {tagsOf(listed).map((tag) => (
            <Chip key={tag.id} on={tags.includes(tag.id)} onClick={() => toggle(tag.id)}>
              {tag.label}
            </Chip>
          ))}
        </div>
      </div>
      {tools.isError && <ErrorFault error={tools.error} onRetry={() => void tools.refetch()} />}
      {tools.isPending && (
        <Waiting>
          <div className={styles.tools}>
            {Array.from({ length: 8 }, (_, at) => (
              <Bone key={at} height={84} />
            ))}
          </div>
        </Waiting>
      )}
      {tools.isSuccess && found.length === 0 && (
        <Empty
          title={listed.length === 0 ? text.noTools : text.pickerEmpty}
          actions={
            <Button
              onClick={() => {
                setQuery('');
                setTags([]);
                setKitId(undefined);
              }}
            >
              {text.pickerClear}
            </Button>
          }
        >
          {listed.length === 0 ? text.noToolsHint : text.pickerEmptyHint}
        </Empty>
      )}
      <ul className={styles.tools}>
        {found.map((tool) => (
          <ToolEntry
            key={tool.id}
            tool={tool}
            labels={labels.get(tool.id)?.map((label) => label.label) ?? []}
            chosen={tool.id === chosen}
            onChoose={() => onChoose(tool.id)}
          />
        ))}
      </ul>
    </Dialog>
  );
}

/** focusFirst marks the input that gets the focus when the dialog opens. */
function focusFirst(input: HTMLInputElement | null): void {
  input?.setAttribute('autofocus', '');
}

type ToolEntryProps = { tool: Tool; labels: string[]; chosen: boolean; onChoose: () => void };

function ToolEntry({ tool, labels, chosen, onChoose }: ToolEntryProps) {
  return (
    <li>
      <button
        type="button"
        className={classes(styles.entry, chosen && styles.chosen)}
        aria-current={chosen || undefined}
        onClick={onChoose}
      >
        <ToolPicture tool={tool} />
        <span className={styles.entryText}>
          <b>{tool.name}</b>
          <span className={styles.description}>{tool.description}</span>
          <span className={styles.line}>
            <span className="num">{text.toolPrice(tool.tokens_per_result)}</span>
            {tool.average_gen_in_seconds !== null && <span>{text.about(tool.average_gen_in_seconds)}</span>}
            {labels.map((label) => (
              <Tag key={label} tone="hot">
                {label}
              </Tag>
            ))}
          </span>
        </span>
      </button>
    </li>
  );
}
