import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useAccount } from '../data/account';
import { type ToolDetail, toolQuery, useTools } from '../data/catalog';
import styles from '../data/ToolPicker.module.css';
import { ToolPicture } from '../data/ToolPicture';
import { leavesOf, type MediaValue, type Medium, mediumOf } from '../form/fields';
import { text } from '../text/create';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Bone, Empty, Waiting } from '../ui/States';

const atOnce = 6;

/** useToolsFor finds the tools that take a kind of file; only a tool's form tells, so the forms are read. */
function useToolsFor(type: Medium): { found: ToolDetail[]; done: boolean } {
  const { teamId } = useAccount();
  const cache = useQueryClient();
  const tools = useTools(teamId).data;
  const [found, setFound] = useState<ToolDetail[]>([]);
  const [done, setDone] = useState(false);

  useEffect(() => {
    let stopped = false;
    const read = async () => {
      for (let at = 0; tools && at < tools.length && !stopped; at += atOnce) {
        const some = tools.slice(at, at + atOnce).map((tool) => cache.fetchQuery(toolQuery(tool.id, teamId)));
        const read = (await Promise.allSettled(some)).flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
        const fitting = read.filter((tool) => leavesOf(tool.fields).some((field) => mediumOf(field) === type));
        if (!stopped) {
          setFound((before) => [...before, ...fitting]);
        }
      }
      setDone(!stopped && tools !== undefined);
    };
    setFound([]);
    void read();
    return () => {
      stopped = true;
    };
  }, [tools, type, teamId, cache]);

  return { found, done };
}

type Props = { file: MediaValue; onUse: (tool: ToolDetail) => void; onClose: () => void };

/** UseAsInput asks for the tool that shall work on a file. */
export default function UseAsInput({ file, onUse, onClose }: Props) {
  const { found, done } = useToolsFor(file.type ?? 'IMG');

  return (
    <Dialog open onClose={onClose} title={text.useAsInputTitle} kind="wide">
      {found.length > 0 && <p className="soft">{text.useAsInputHint}</p>}
      <ul className={styles.tools}>
        {found.map((tool) => (
          <li key={tool.id}>
            <button type="button" className={styles.entry} onClick={() => onUse(tool)}>
              <ToolPicture tool={tool} />
              <span className={styles.entryText}>
                <b>{tool.name}</b>
                <span className={styles.description}>{tool.description}</span>
                <span className={styles.line}>{text.toolPrice(tool.tokens_per_result)}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
      {!done && (
        <Waiting>
          <Bone height={84} />
        </Waiting>
      )}
      {done && found.length === 0 && (
        <Empty title={text.useAsInputNone} actions={<Button onClick={onClose}>{text.done}</Button>} />
      )}
    </Dialog>
  );
}
