package catalog

import (
	"strconv"
	"strings"
)

// Leaves returns the fields of the tool's form that have a key, in the order of
// the form.
func (t *Tool) Leaves() []*Field {
	var all []*Field
	var visit func(fields []Field)
	visit = func(fields []Field) {
		for i := range fields {
			f := &fields[i]
			if f.Key != "" {
				all = append(all, f)
			}
			visit(f.Children)
		}
	}
	visit(t.Fields)
	return all
}

// IsMedia reports whether the value of the field is a file, or a list of files.
func (f *Field) IsMedia() bool { return mediaOf[f.Type] != "" }

// MediaType returns the media type that the field accepts, such as IMG, or ""
// if its value is no file.
func (f *Field) MediaType() string { return mediaOf[f.Type] }

// IsList reports whether the value of the field is a list of files.
func (f *Field) IsList() bool { return fieldTypes[f.Type] == mediaListFamily }

// ParseSize parses a size such as 1024x1024.
func ParseSize(text string) (width, height int64, ok bool) {
	w, h, found := strings.Cut(text, "x")
	width, errW := strconv.ParseInt(w, 10, 32)
	height, errH := strconv.ParseInt(h, 10, 32)
	return width, height, found && errW == nil && errH == nil && width > 0 && height > 0
}

// SizeValue returns the value of a WIDTH_HEIGHT field.
func SizeValue(width, height int64) map[string]any {
	return map[string]any{"width": width, "height": height}
}
