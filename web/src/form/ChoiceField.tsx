import { useId, useState } from 'react';
import type { Schemas } from '../api/client';
import { text } from '../text/form';
import { classes } from '../ui/classes';
import { Field, SearchInput, Select } from '../ui/Field';
import { Icon } from '../ui/Icon';
import type { FieldProps } from './FieldInput';
import styles from './Form.module.css';
import { isEmpty, optionsOf } from './fields';

type Option = Schemas['Option'];

const manyOptions = 12;

/** ChoiceField offers the options of a select: as a list, as buttons, or as pictures. */
export function ChoiceField(props: FieldProps) {
  const { field, value, problem, onChange } = props;
  const { options, layout } = optionsOf(field);

  if (field.type === 'MULTI_SELECT' || layout !== 'text') {
    return <Options {...props} options={options} pictures={layout === 'image'} />;
  }
  const mayBeEmpty = !field.required && isEmpty((field.defaultValue ?? undefined) as FieldProps['value']);

  return (
    <Field label={field.label} help={field.display.help} problem={problem}>
      {(attributes) => (
        <Select
          {...attributes}
          data-field={field.fieldKey}
          value={value === undefined ? '' : String(value)}
          onChange={(event) => onChange(options.find((option) => String(option.value) === event.target.value)?.value)}
        >
          {(mayBeEmpty || value === undefined) && <option value="">{text.noChoice}</option>}
          {options.map((option) => (
            <option key={String(option.value)} value={String(option.value)}>
              {option.text}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

type OptionsProps = FieldProps & { options: Option[]; pictures: boolean };

/** Options shows each option as a button that is on or off; a long list can be searched. */
function Options({ field, value, problem, onChange, options, pictures }: OptionsProps) {
  const name = useId();
  const [query, setQuery] = useState('');
  const many = field.type === 'MULTI_SELECT';
  const chosen = many ? ((Array.isArray(value) ? value : []) as Array<string | number>) : [];
  const isOn = (option: Option) => (many ? chosen.includes(option.value) : value === option.value);
  const matches = (option: Option) => isOn(option) || option.text.toLowerCase().includes(query.toLowerCase());
  const shown = query ? options.filter(matches) : options;
  const full = many && field.display.max_items !== undefined && chosen.length >= field.display.max_items;

  const choose = (option: Option) => {
    if (!many) {
      onChange(option.value);
    } else if (isOn(option)) {
      onChange(chosen.filter((one) => one !== option.value));
    } else {
      onChange([...chosen, option.value]);
    }
  };
  const note = many && field.display.max_items ? text.count(chosen.length, field.display.max_items) : undefined;

  return (
    <Field label={field.label} note={note} help={field.display.help} problem={problem} group>
      {() => (
        <>
          {options.length > manyOptions && (
            <SearchInput
              label={text.filterOptions(field.label)}
              value={query}
              onChange={(event) => setQuery(event.target.value)}
            />
          )}
          <div className={classes(pictures ? styles.pictures : styles.options, options.length > 24 && styles.long)}>
            {shown.map((option, at) => (
              <label key={String(option.value)} className={classes(pictures ? styles.picture : styles.option)}>
                <input
                  type={many ? 'checkbox' : 'radio'}
                  name={name}
                  data-field={at === 0 ? field.fieldKey : undefined}
                  checked={isOn(option)}
                  disabled={full && !isOn(option)}
                  onChange={() => choose(option)}
                />
                {pictures &&
                  (option.image_url ? (
                    <img src={option.image_url} alt="" loading="lazy" />
                  ) : (
                    <span className={styles.noPicture}>
                      <Icon name="image" />
                    </span>
                  ))}
                <span className={styles.optionText}>{option.text}</span>
              </label>
            ))}
          </div>
          {shown.length === 0 && <p className="small soft">{text.noOptions}</p>}
        </>
      )}
    </Field>
  );
}
