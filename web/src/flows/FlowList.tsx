import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { api } from '../api/client';
import { useAccount } from '../data/account';
import { useAction } from '../data/action';
import { ErrorFault } from '../data/ErrorFault';
import { type FlowSummary, rereadFlows, useFlows } from '../data/flows';
import { text } from '../text/flows';
import { ButtonLink, IconButton } from '../ui/Button';
import { Confirm } from '../ui/Dialog';
import { formatAgo } from '../ui/format';
import { Icon } from '../ui/Icon';
import { PageHead } from '../ui/PageHead';
import { Bone, Empty, Waiting } from '../ui/States';
import styles from './FlowList.module.css';

/** FlowList shows the saved flows of the account, and those that other teams share with its company. */
export default function FlowList() {
  const { teamId, linkTo } = useAccount();
  const flows = useFlows(teamId);
  const [removing, setRemoving] = useState<FlowSummary>();
  const all = (flows.data ?? []).toSorted((one, other) => other.updated.localeCompare(one.updated));

  const newButton = (
    <ButtonLink kind="main" icon="plus" href={linkTo('/flows/new')}>
      {text.newFlow}
    </ButtonLink>
  );

  return (
    <div className={styles.page}>
      <PageHead title={text.title} note={<span className="hide-small">{text.lead}</span>}>
        <span className="grow" />
        {newButton}
      </PageHead>
      {flows.isError && !flows.data && <ErrorFault error={flows.error} onRetry={() => void flows.refetch()} />}
      {flows.isPending && (
        <Waiting>
          <div className={styles.list}>
            {Array.from({ length: 4 }, (_, at) => (
              <Bone key={at} height={74} />
            ))}
          </div>
        </Waiting>
      )}
      {flows.isSuccess && all.length === 0 && (
        <Empty title={text.emptyTitle} actions={newButton}>
          {text.emptyText}
        </Empty>
      )}
      <ul className={styles.list}>
        {all.map((flow) => (
          <Row key={flow.id} flow={flow} onRemove={() => setRemoving(flow)} />
        ))}
      </ul>
      {removing && <RemoveFlow flow={removing} onClose={() => setRemoving(undefined)} />}
    </div>
  );
}

function Row({ flow, onRemove }: { flow: FlowSummary; onRemove: () => void }) {
  const { me, teamId, linkTo } = useAccount();
  const own = (flow.team_id ?? undefined) === teamId;
  const parts = [
    own ? (flow.uid === me.user.uid ? text.byYou : text.byTeam) : text.sharedByOthers,
    own && flow.shared ? text.sharedByYou : undefined,
    text.updated(formatAgo(flow.updated)),
  ];

  return (
    <li className={styles.row}>
      <span className={styles.mark}>
        <Icon name="flow" />
      </span>
      <div className={styles.words}>
        <Link href={linkTo(`/flows/${flow.id}`)} className={styles.name}>
          {flow.name}
        </Link>
        {flow.description && <p className={styles.description}>{flow.description}</p>}
        <p className={styles.meta}>
          {parts.filter(Boolean).map((part) => (
            <span key={part}>{part}</span>
          ))}
        </p>
      </div>
      <div className={styles.acts}>
        <ButtonLink small icon="spark" href={linkTo(`/create/${flow.id}`)} label={text.runOf(flow.name)}>
          {text.run}
        </ButtonLink>
        <ButtonLink small href={linkTo(`/flows/${flow.id}`)} label={text.editOf(flow.name)}>
          {text.edit}
        </ButtonLink>
        {own && <IconButton small icon="trash" label={text.deleteOf(flow.name)} onClick={onRemove} />}
      </div>
    </li>
  );
}

function RemoveFlow({ flow, onClose }: { flow: FlowSummary; onClose: () => void }) {
  const { teamId } = useAccount();
  const cache = useQueryClient();
  const remove = useAction(
    () => api.DELETE('/flows/{flow_id}', { params: { path: { flow_id: flow.id }, query: { team_id: teamId } } }),
    {
      done: () => text.deleted(flow.name),
      onDone: () => {
        onClose();
        void rereadFlows(cache, flow.id);
      },
    },
  );

  return (
    <Confirm
      open
      title={text.deleteTitle(flow.name)}
      action={text.delete}
      danger
      busy={remove.busy}
      onConfirm={() => remove.run()}
      onClose={onClose}
    >
      <p>{text.deleteText}</p>
      {remove.error !== null && <ErrorFault error={remove.error} />}
    </Confirm>
  );
}
