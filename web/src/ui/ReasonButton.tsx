import type { ComponentProps } from 'react';
import { Button } from './Button';
import { useToast } from './Toast';

type Props = ComponentProps<typeof Button> & {
  /** Why the button does nothing for this person; it is told when the button is pressed. */
  reason?: string;
};

/** ReasonButton stays where people look for it even if it is not allowed, and then says why. */
export function ReasonButton({ reason, onClick, title, ...rest }: Props) {
  const toast = useToast();

  return (
    <Button
      aria-disabled={reason ? true : undefined}
      title={reason ?? title}
      onClick={reason ? () => toast({ text: reason }) : onClick}
      {...rest}
    />
  );
}
