import { useQuery } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { useAccount } from '../data/account';
import { ErrorFault } from '../data/ErrorFault';
import { type Flow, flowQuery, takeHandedDraft } from '../data/flows';
import { useSearchValues } from '../data/search';
import { text } from '../text/flows';
import { ButtonLink } from '../ui/Button';
import { Waiting } from '../ui/States';
import { Editor } from './Editor';
import styles from './Editor.module.css';
import { draftOf, emptyDraft } from './model';

/** newId stands in the address of a flow that is not saved yet. */
const newId = 'new';

/** FlowPage opens a flow in the editor. A flow that is saved for the first time gets its address, and the editor stays. */
export default function FlowPage({ flowId }: { flowId: string }) {
  const { teamId } = useAccount();
  const [search] = useSearchValues();
  const from = search.get('from') ?? '';
  // The address that the editor has given itself by saving; it must not open anew for that.
  const own = useRef<string>(undefined);
  const [opened, setOpened] = useState({ source: flowId, flowId, teamId, from, number: 0 });
  const changed = opened.flowId !== flowId || opened.teamId !== teamId || (flowId === newId && opened.from !== from);
  const kept = own.current === flowId && opened.teamId === teamId;

  useEffect(() => {
    if (changed && kept) {
      setOpened({ ...opened, flowId, from });
    } else if (changed) {
      setOpened({ source: flowId, flowId, teamId, from, number: opened.number + 1 });
    } else {
      own.current = undefined;
    }
  }, [changed, kept, flowId, teamId, from, opened]);

  const onSavedAs = useCallback((id: string) => {
    own.current = id;
  }, []);

  if (changed && !kept) {
    return <Reading />;
  }
  return opened.source === newId ? (
    <NewFlow key={opened.number} from={from} onSavedAs={onSavedAs} />
  ) : (
    <SavedFlow key={opened.number} flowId={opened.source} onSavedAs={onSavedAs} />
  );
}

function Reading() {
  return (
    <div className={styles.reading}>
      <Waiting label={text.reading} />
    </div>
  );
}

type Opened = { onSavedAs: (id: string) => void };

function NewFlow({ from, onSavedAs }: Opened & { from: string }) {
  const [draft] = useState(() => {
    const handed = from ? takeHandedDraft() : undefined;
    return handed ? draftOf(handed) : emptyDraft;
  });

  return <Editor first={draft} flow={undefined} onSavedAs={onSavedAs} />;
}

function SavedFlow({ flowId, onSavedAs }: Opened & { flowId: string }) {
  const { teamId, linkTo } = useAccount();
  const query = useQuery({ ...flowQuery(flowId, teamId), gcTime: 0 });
  const [flow, setFlow] = useState<Flow>();

  useEffect(() => {
    setFlow((before) => before ?? query.data);
  }, [query.data]);

  if (query.isError && !flow) {
    return (
      <div className={styles.reading}>
        <h1 className="unseen">{text.title}</h1>
        <ErrorFault error={query.error} onRetry={() => void query.refetch()} />
        <ButtonLink href={linkTo('/flows')}>{text.allFlows}</ButtonLink>
      </div>
    );
  }
  return flow ? <Editor first={draftOf(flow)} flow={flow} onSavedAs={onSavedAs} /> : <Reading />;
}
