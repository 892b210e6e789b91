import { type SyntheticEvent, useState } from 'react';
import { text } from '../text/library';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, TextInput } from '../ui/Field';

type Props = {
  from: string | undefined;
  until: string | undefined;
  onChoose: (from: string | undefined, until: string | undefined) => void;
  onClose: () => void;
};

/** DaysDialog asks for a first and a last day. */
export function DaysDialog({ from, until, onChoose, onClose }: Props) {
  const [first, setFirst] = useState(from ?? '');
  const [last, setLast] = useState(until ?? '');

  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    const swapped = first && last && first > last;
    onChoose((swapped ? last : first) || undefined, (swapped ? first : last) || undefined);
    onClose();
  };

  return (
    <Dialog open onClose={onClose} title={text.daysTitle} kind="sheet">
      <form className="stack" onSubmit={submit}>
        <Field label={text.firstDay}>
          {(attributes) => (
            <TextInput {...attributes} type="date" value={first} onChange={(event) => setFirst(event.target.value)} />
          )}
        </Field>
        <Field label={text.lastDay}>
          {(attributes) => (
            <TextInput {...attributes} type="date" value={last} onChange={(event) => setLast(event.target.value)} />
          )}
        </Field>
        <div className="row">
          <span className="grow" />
          <Button onClick={onClose}>{text.cancel}</Button>
          <Button kind="main" type="submit">
            {text.show}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
