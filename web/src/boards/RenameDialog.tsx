import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api } from '../api/client';
import { useAccount } from '../data/account';
import { ErrorFault } from '../data/ErrorFault';
import { text } from '../text/boards';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, TextInput } from '../ui/Field';
import { boardsKey } from './lists';
import type { BoardSummary } from './model';

type Props = { board: Pick<BoardSummary, 'id' | 'name'>; open: boolean; onClose: () => void };

/** RenameDialog gives a board another name. */
export function RenameDialog({ board, open, onClose }: Props) {
  return (
    <Dialog open={open} onClose={onClose} title={text.renameTitle}>
      <RenameForm board={board} onClose={onClose} />
    </Dialog>
  );
}

function RenameForm({ board, onClose }: Omit<Props, 'open'>) {
  const { teamId } = useAccount();
  const cache = useQueryClient();
  const [name, setName] = useState(board.name);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();

  const rename = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const params = { path: { board_id: board.id }, query: { team_id: teamId } };
      await api.PATCH('/boards/{board_id}', { params, body: { name: name.trim() } });
      void cache.invalidateQueries({ queryKey: boardsKey(teamId) });
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };

  return (
    <form className="stack" onSubmit={(event) => void rename(event)}>
      <Field label={text.name}>
        {(attributes) => (
          <TextInput
            {...attributes}
            autoFocus
            required
            maxLength={200}
            value={name}
            onFocus={(event) => event.target.select()}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      {error !== undefined && <ErrorFault error={error} />}
      <div className="row">
        <span className="grow" />
        <Button onClick={onClose}>{text.cancel}</Button>
        <Button kind="main" type="submit" disabled={busy || name.trim() === ''}>
          {text.save}
        </Button>
      </div>
    </form>
  );
}
