import { useState } from 'react';
import { ToolPicture } from '../data/ToolPicture';
import { Form } from '../form/Form';
import { leavesOf, valueIn } from '../form/fields';
import { changedFields, wordsOf } from '../form/summary';
import { text } from '../text/create';
import { Button, IconButton } from '../ui/Button';
import { Chip, Tag } from '../ui/Chip';
import { Dialog } from '../ui/Dialog';
import { TextInput } from '../ui/Field';
import { Icon } from '../ui/Icon';
import styles from './Create.module.css';
import { FormFoot, isBlocked, Refusal } from './FormFoot';
import { Notice } from './Notice';
import type { ToolFormState } from './useToolForm';

/** Composer is the form of small screens: tool, prompt and Create at the foot, all inputs in a sheet. */
export function Composer({ form, onChooseTool }: { form: ToolFormState; onChooseTool: () => void }) {
  const { tool, values, count, price, starting, wait } = form;
  const [open, setOpen] = useState(false);
  const fields = leavesOf(tool.fields);
  const prompt = fields.find((field) => field.type === 'PROMPT') ?? fields.find((field) => field.type === 'TEXT_AREA');
  const promptValue = prompt && valueIn(prompt, values);
  const changed = changedFields(tool.fields, values).filter((field) => field !== prompt);
  const hidden = Object.keys(form.problems).some((key) => key !== prompt?.fieldKey);
  const blocked = isBlocked(form);
  const tokens = price.data?.total_tokens;

  const create = () => {
    form.create();
    if (hidden || fields.some((field) => field.required && field !== prompt && valueIn(field, values) === undefined)) {
      setOpen(true);
    }
  };

  return (
    <section className={styles.composer} aria-label={text.toolForm}>
      <Notice form={form} />
      <Refusal form={form} />
      <div className={styles.composerLine}>
        <Chip aria-label={text.chooseTool(tool.name)} className={styles.composerTool} onClick={onChooseTool}>
          <ToolPicture tool={tool} />
          <span className="cut">{tool.name}</span>
          <Icon name="chevronDown" small />
        </Chip>
        <div className={styles.composerTags}>
          {changed.map((field) => (
            <Tag key={field.fieldKey}>{wordsOf(field, valueIn(field, values))}</Tag>
          ))}
          {tool.num_results && <Tag>{text.results(count, tool.output.type)}</Tag>}
        </div>
        <IconButton icon="filter" label={text.allInputs} onClick={() => setOpen(true)} />
      </div>
      <div className={styles.composerLine}>
        {prompt ? (
          <TextInput
            aria-label={prompt.label}
            aria-invalid={form.problems[prompt.fieldKey] ? true : undefined}
            className={styles.composerInput}
            placeholder={prompt.display.placeholder}
            data-field={prompt.fieldKey}
            value={typeof promptValue === 'string' ? promptValue : ''}
            onChange={(event) => form.setValue(prompt.fieldKey, event.target.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && !blocked) {
                create();
              }
            }}
          />
        ) : (
          <Button className="grow" onClick={() => setOpen(true)}>
            {text.allInputs}
          </Button>
        )}
        <Button
          kind="main"
          icon="arrow"
          className={styles.composerCreate}
          aria-label={wait > 0 ? text.tryIn(wait) : tokens === undefined ? text.create : text.createFor(tokens)}
          aria-disabled={blocked || undefined}
          aria-busy={starting || undefined}
          onClick={() => !blocked && create()}
        >
          <span className="num">{wait > 0 ? `${wait} s` : tokens}</span>
        </Button>
      </div>
      <Dialog
        open={open}
        onClose={() => setOpen(false)}
        title={text.inputsTitle(tool.name)}
        kind="sheet"
        actions={<FormFoot form={form} />}
      >
        <div className={styles.sheet}>
          <Form
            nodes={tool.fields}
            values={values}
            problems={form.problems}
            uploads={form.uploads}
            onChange={form.setValue}
          />
        </div>
      </Dialog>
    </section>
  );
}
