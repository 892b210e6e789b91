import { type ClipboardEvent, type DragEvent, useLayoutEffect } from 'react';
import type { ToolDetail } from '../data/catalog';
import { hasDragged, hasFiles, readDragged } from '../data/dragged';
import { Form } from '../form/Form';
import { addMedia, fieldFor } from '../form/mediafields';
import { mediumOfFile } from '../form/uploads';
import { text } from '../text/create';
import { Button } from '../ui/Button';
import { useKeys } from '../ui/keys';
import { useWideScreen } from '../ui/screen';
import { Composer } from './Composer';
import styles from './Create.module.css';
import { FormFoot } from './FormFoot';
import { Notice } from './Notice';
import { ToolButton } from './ToolButton';
import { type ToolFormState, useToolForm } from './useToolForm';

type Props = { tool: ToolDetail; small: boolean; onChooseTool: () => void };

/** ToolForm is the form of a tool: a column beside the feed, or a composer at the foot of small screens. */
export function ToolForm({ tool, small, onChooseTool }: Props) {
  const form = useToolForm(tool);
  useKeys({ 'Ctrl+Enter': form.create });
  usePastedFiles(form);

  if (small) {
    return <Composer form={form} onChooseTool={onChooseTool} />;
  }
  return <FormColumn form={form} onChooseTool={onChooseTool} />;
}

function FormColumn({ form, onChooseTool }: { form: ToolFormState; onChooseTool: () => void }) {
  const wide = useWideScreen();
  const { tool, values } = form;
  const changed = Object.values(values).some((value) => value !== undefined);

  return (
    <section
      className={styles.toolForm}
      aria-label={text.toolForm}
      onDragOver={allowDrop}
      onDrop={(event) => take(form, event)}
    >
      <div className={styles.toolFormHead}>
        <ToolButton tool={tool} onClick={onChooseTool} />
      </div>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          form.create();
        }}
      >
        <Notice form={form} />
        <Form
          nodes={tool.fields}
          values={values}
          problems={form.problems}
          uploads={form.uploads}
          onChange={form.setValue}
          unfolded={wide}
        />
        {changed && (
          <div className={styles.startOver}>
            <Button kind="bare" small icon="undo" onClick={form.startOver}>
              {text.startOver}
            </Button>
          </div>
        )}
      </form>
      <FormFoot form={form} />
    </section>
  );
}

function allowDrop(event: DragEvent): void {
  if (hasDragged(event.dataTransfer) || hasFiles(event.dataTransfer)) {
    event.preventDefault();
  }
}

/** take puts what was dropped beside the media fields into the field that fits. */
function take(form: ToolFormState, event: DragEvent): void {
  if (hasDragged(event.dataTransfer)) {
    event.preventDefault();
    for (const item of readDragged(event.dataTransfer)) {
      const field = fieldFor(form.tool.fields, form.values, item.type);
      if (field) {
        form.setValue(field.fieldKey, (before) => addMedia(field, before, item));
      }
    }
  } else if (hasFiles(event.dataTransfer)) {
    event.preventDefault();
    addFiles(form, event.dataTransfer.files);
  }
}

function addFiles(form: ToolFormState, files: FileList): boolean {
  let taken = false;
  for (const file of files) {
    const medium = mediumOfFile(file);
    const field = medium && fieldFor(form.tool.fields, form.values, medium, file.type);
    if (field) {
      form.uploads.addFiles(field, [file]);
      taken = true;
    }
  }

  return taken;
}

/** usePastedFiles puts files that are pasted anywhere on the page into the field that fits. */
function usePastedFiles(form: ToolFormState): void {
  useLayoutEffect(() => {
    const paste = (event: Event) => {
      const files = (event as unknown as ClipboardEvent).clipboardData?.files;
      if (files && files.length > 0 && addFiles(form, files)) {
        event.preventDefault();
      }
    };
    addEventListener('paste', paste);
    return () => removeEventListener('paste', paste);
  }, [form]);
}
