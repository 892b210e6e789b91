import { useEffect, useState } from 'react';
import { Field, TextInput } from '../ui/Field';

type Props = {
  label: string;
  help?: string;
  value: string;
  /** Returns why a name cannot be used. */
  refuse: (name: string) => string | undefined;
  onChange: (name: string) => void;
};

/** NameField is an input for a name that others refer to: it is changed when the input is left, and only to one that is free. */
export function NameField({ label, help, value, refuse, onChange }: Props) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  const problem = typed === value ? undefined : refuse(typed);

  const end = () => {
    if (typed !== value && !problem) {
      onChange(typed);
    } else {
      setTyped(value);
    }
  };

  return (
    <Field label={label} help={help} problem={problem}>
      {(attributes) => (
        <TextInput
          {...attributes}
          value={typed}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => setTyped(event.target.value)}
          onBlur={end}
          onKeyDown={(event) => {
            if (event.key === 'Enter') {
              event.preventDefault();
              end();
            }
          }}
        />
      )}
    </Field>
  );
}
