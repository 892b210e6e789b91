import { useQuery } from '@tanstack/react-query';
import { api, dataOf } from '../api/client';
import { useAccount } from '../data/account';
import { ErrorFault } from '../data/ErrorFault';
import type { Flow } from '../data/flows';
import { text } from '../text/flows';
import { Button } from '../ui/Button';
import { Tag } from '../ui/Chip';
import { Dialog } from '../ui/Dialog';
import { formatTime } from '../ui/format';
import { Bone, Waiting } from '../ui/States';
import { draftOf, type FlowDraft } from './model';
import styles from './Panel.module.css';

type Props = { flow: Flow; onRestore: (version: number, draft: FlowDraft) => void; onClose: () => void };

/** VersionsDialog lists the saved versions of a flow; an old one can be put into the editor. */
export function VersionsDialog({ flow, onRestore, onClose }: Props) {
  const { teamId } = useAccount();
  const versions = useQuery({
    queryKey: ['flow-versions', flow.id, flow.version],
    queryFn: async () => {
      const params = { path: { flow_id: flow.id }, query: { team_id: teamId } };
      return dataOf(await api.GET('/flows/{flow_id}/versions', { params })).data;
    },
  });

  return (
    <Dialog open onClose={onClose} title={text.versionsTitle}>
      <div className="stack">
        <p className="small soft">{text.versionsHelp}</p>
        {versions.isError && <ErrorFault error={versions.error} onRetry={() => void versions.refetch()} />}
        {versions.isPending && (
          <Waiting>
            <Bone height={48} />
          </Waiting>
        )}
        <ul className={styles.entries}>
          {versions.data?.map((one) => (
            <li key={one.version} className={styles.note}>
              <span className="grow">
                <b>{text.version(one.version)}</b>
                <span className="small soft"> {formatTime(one.created)}</span>
                <span className="small cut"> {one.name}</span>
              </span>
              {one.version === flow.version ? (
                <Tag>{text.present}</Tag>
              ) : (
                <Button
                  small
                  aria-label={text.restoreOf(one.version)}
                  onClick={() => onRestore(one.version, draftOf(one))}
                >
                  {text.restore}
                </Button>
              )}
            </li>
          ))}
        </ul>
      </div>
    </Dialog>
  );
}
