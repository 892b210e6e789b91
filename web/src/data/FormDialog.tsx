import { type ReactNode, useId } from 'react';
import { text } from '../text/shared';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { type Action, hasUnnamedProblem } from './action';
import { ErrorFault } from './ErrorFault';

type Props<V> = {
  open: boolean;
  title: string;
  /** What the button does, as a verb. */
  submit: string;
  /** What the other button says, where “Cancel” could be read as the deed itself. */
  back?: string;
  action: Action<V>;
  /** The fields that show their problems themselves, by their places in the request. */
  fields?: string[];
  danger?: boolean;
  wide?: boolean;
  disabled?: boolean;
  onSubmit: () => void;
  onClose: () => void;
  children: ReactNode;
};

/** FormDialog is a dialog with a form that calls the service; a refusal is shown in it, and nothing typed is lost. */
export function FormDialog<V>(props: Props<V>) {
  const {
    open,
    title,
    submit,
    back = text.cancel,
    action,
    fields = [],
    danger,
    wide,
    disabled,
    onSubmit,
    onClose,
    children,
  } = props;
  const id = useId();

  const close = () => {
    action.reset();
    onClose();
  };
  const actions = (
    <>
      <Button onClick={close}>{back}</Button>
      <Button
        type="submit"
        form={id}
        kind={danger ? 'danger' : 'main'}
        disabled={disabled || action.busy || action.wait > 0}
      >
        {action.wait > 0 ? text.waitSeconds(action.wait) : submit}
      </Button>
    </>
  );

  return (
    <Dialog open={open} onClose={close} title={title} actions={actions} kind={wide ? 'wide' : 'dialog'}>
      <form
        id={id}
        className="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        {children}
        {hasUnnamedProblem(action.error, fields) && <ErrorFault error={action.error} />}
      </form>
    </Dialog>
  );
}
