import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { type SyntheticEvent, useState } from 'react';
import { useLocation } from 'wouter';
import { api, dataOf, type Schemas } from '../api/client';
import { text } from '../text/pin';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, TextInput } from '../ui/Field';
import { Icon } from '../ui/Icon';
import { Bone, Waiting } from '../ui/States';
import { useToast } from '../ui/Toast';
import { useAccount } from './account';
import { type BoardItem, placeBelow } from './boardplaces';
import { ErrorFault } from './ErrorFault';
import styles from './PinDialog.module.css';

/** readNodes reads all nodes of a board. */
async function readNodes(boardId: string): Promise<Schemas['Node'][]> {
  const nodes: Schemas['Node'][] = [];
  let cursor: string | undefined;
  do {
    const params = { path: { board_id: boardId }, query: { cursor, limit: 100 } };
    const board = dataOf(await api.GET('/boards/{board_id}', { params }));
    nodes.push(...board.nodes);
    cursor = board.next_cursor ?? undefined;
  } while (cursor);

  return nodes;
}

/** PinDialog puts results and uploads on a board: one that exists, or a new one. */
export default function PinDialog({ items, onClose }: { items: BoardItem[]; onClose: () => void }) {
  const { teamId, linkTo } = useAccount();
  const [name, setName] = useState('');
  const [, navigate] = useLocation();
  const cache = useQueryClient();
  const toast = useToast();

  const boards = useInfiniteQuery({
    queryKey: ['boards', 'names', teamId],
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Schemas['BoardList']) => page.next_cursor ?? undefined,
    queryFn: async ({ pageParam }) => {
      const query = { team_id: teamId, limit: 100, cursor: pageParam };
      return dataOf(await api.GET('/boards', { params: { query } }));
    },
  });

  const pin = useMutation({
    mutationFn: async (chosen: Schemas['BoardSummary'] | undefined) => {
      const board =
        chosen ??
        dataOf(await api.POST('/boards', { params: { query: { team_id: teamId } }, body: { name: name.trim() } }));
      const nodes = chosen ? await readNodes(board.id) : [];
      const create = placeBelow(nodes, items);
      await api.PATCH('/boards/{board_id}/nodes', { params: { path: { board_id: board.id } }, body: { create } });
      return board;
    },
    onSuccess: (board) => {
      void cache.invalidateQueries({ queryKey: ['boards'] });
      onClose();
      const open = () => navigate(linkTo(`/boards/${board.id}`));
      toast({ text: text.pinned(items.length, board.name), action: { label: text.openBoard, run: open } });
    },
  });

  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (name.trim()) {
      pin.mutate(undefined);
    }
  };

  const known = boards.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <Dialog open onClose={onClose} title={text.title(items.length)} kind="sheet">
      <div className="stack">
        {pin.isError && <ErrorFault error={pin.error} onRetry={() => pin.mutate(pin.variables)} />}
        {boards.isError && <ErrorFault error={boards.error} onRetry={() => void boards.refetch()} />}
        {boards.isPending && (
          <Waiting>
            <Bone height={40} />
            <Bone height={40} />
          </Waiting>
        )}
        {boards.data && known.length === 0 && <p className="soft">{text.noBoards}</p>}
        {known.length > 0 && (
          <ul className={styles.boards} aria-label={text.chooseBoard}>
            {known.map((board) => (
              <li key={board.id}>
                <button type="button" disabled={pin.isPending} onClick={() => pin.mutate(board)}>
                  <Icon name="board" />
                  <span className="grow cut">{board.name}</span>
                  <span className="small soft num">{text.boardNodes(board.node_count)}</span>
                </button>
              </li>
            ))}
          </ul>
        )}
        <form className={styles.create} onSubmit={submit}>
          <Field label={text.newBoard}>
            {(attributes) => (
              <TextInput
                {...attributes}
                value={name}
                maxLength={200}
                onChange={(event) => setName(event.target.value)}
              />
            )}
          </Field>
          <Button kind="main" icon="plus" type="submit" disabled={!name.trim() || pin.isPending}>
            {text.createAndPin}
          </Button>
        </form>
      </div>
    </Dialog>
  );
}
