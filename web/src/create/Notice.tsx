import { text } from '../text/create';
import { Button } from '../ui/Button';
import { Icon } from '../ui/Icon';
import styles from './Create.module.css';
import type { ToolFormState } from './useToolForm';

/** Notice says what a change of the tool did to what was typed. */
export function Notice({ form }: { form: ToolFormState }) {
  if (!form.notice) {
    return null;
  }
  return (
    <div className={styles.notice} role="status">
      <Icon name="info" />
      <p className="grow">{form.notice}</p>
      <Button small onClick={form.dismissNotice}>
        {text.done}
      </Button>
    </div>
  );
}
