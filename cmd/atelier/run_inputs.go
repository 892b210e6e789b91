package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"atelier/client"
	"atelier/internal/base/sanitize"
	"atelier/internal/catalog/catalog"
)

// readRequests reads the inputs of the command line, and checks them against the
// tool's form before anything is sent. It returns a request for each
// combination of values, and for each repetition.
func (c runCmd) readRequests(tool *client.ToolDetail) ([]client.RunRequest, error) {
	form := catalogTool(tool)
	fields := inputFields(form.Fields)
	values := map[string][]any{}
	var keys []string
	var problems []string
	for _, one := range c.Inputs {
		key, text, ok := strings.Cut(one, "=")
		i := slices.IndexFunc(fields, func(f catalog.Field) bool { return f.Key == key })
		if !ok || i < 0 {
			problems = append(problems, describeUnknown(one, key, ok, fields))
			continue
		}
		if len(values[key]) == 0 {
			keys = append(keys, key)
		}
		value, err := parseInput(fields[i], text)
		if err != nil {
			problems = append(problems, key+": "+err.Error())
		}
		values[key] = append(values[key], value)
	}
	for _, f := range fields {
		if f.Required && f.Default == nil && len(values[f.Key]) == 0 {
			problems = append(problems, fmt.Sprintf("%s: this field is required: %s", f.Key, describeField(f)))
		}
	}
	if n := tool.NumResults; c.Results > 0 && (n == nil && c.Results > 1 || n != nil && (int64(c.Results) < n.Min || int64(c.Results) > n.Max)) {
		most := int64(1)
		least := int64(1)
		if n != nil {
			least = n.Min
			most = n.Max
		}
		problems = append(problems, fmt.Sprintf("--results: this tool makes %d to %d results in one run", least, most))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("the inputs of %s are invalid:\n  %s", form.Slug, strings.Join(problems, "\n  "))
	}
	return c.combine(tool, keys, values)
}

// describeUnknown describes an argument that is no field=value of the tool.
func describeUnknown(argument, key string, hasValue bool, fields []catalog.Field) string {
	var keys []string
	for _, f := range fields {
		keys = append(keys, f.Key)
	}
	if !hasValue {
		return fmt.Sprintf("%q must have the form field=value; the fields are %s", argument, strings.Join(keys, ", "))
	}
	text := fmt.Sprintf("%s: there is no such field", key)
	if near := sanitize.Nearest(key, keys); near != "" {
		return text + fmt.Sprintf("; did you mean %s?", near)
	}
	return text + "; the fields are " + strings.Join(keys, ", ")
}

// combine returns a request for every combination of the values. The value of
// the last field changes first.
func (c runCmd) combine(tool *client.ToolDetail, keys []string, values map[string][]any) ([]client.RunRequest, error) {
	all := []map[string]any{{}}
	for _, key := range keys {
		var more []map[string]any
		for _, before := range all {
			for _, value := range values[key] {
				after := maps.Clone(before)
				after[key] = value
				more = append(more, after)
			}
		}
		all = more
		if len(all)*c.Repeat > maxRuns {
			break
		}
	}
	if len(all)*c.Repeat > maxRuns {
		return nil, fmt.Errorf("these values and --repeat %d make more than %d runs", c.Repeat, maxRuns)
	}
	var requests []client.RunRequest
	for _, inputs := range all {
		for range c.Repeat {
			requests = append(requests, client.RunRequest{
				Tool:       tool.ID,
				FieldsHash: tool.ToolFieldsHash,
				Inputs:     inputs,
				Results:    int64(c.Results),
				WebhookURL: c.Webhook,
				RetryOf:    c.RetryOf,
				Key:        client.NewKey(),
			})
		}
	}
	return requests, nil
}

// parseInput parses the command-line value of a field, and checks it with the
// rules of the service.
func parseInput(f catalog.Field, text string) (any, error) {
	switch f.Type {
	case "IMG", "VIDEO", "AUDIO", "ASSET_3D":
		return parseMedia(f, text)
	case "IMGS":
		list := []any{}
		for _, one := range strings.Split(text, ",") {
			m, err := parseMedia(f, one)
			if err != nil {
				return nil, err
			}
			list = append(list, m)
		}
		if f.Display.MaxItems > 0 && int64(len(list)) > f.Display.MaxItems {
			return nil, fmt.Errorf("at most %d files are accepted", f.Display.MaxItems)
		}
		return list, nil
	}
	value := parseValue(f, text)
	switch { // the service takes an empty text as missing
	case text == "" && f.Required:
		return nil, errors.New("this field is required: " + describeField(f))
	case text == "":
		return value, nil
	}
	if problem := f.CheckValue(value); problem != "" {
		return nil, errors.New(problem)
	}
	return value, nil
}

// parseValue converts the text of a field to the type that the field has in
// JSON. A text that cannot be converted stays a text, which CheckValue refuses.
func parseValue(f catalog.Field, text string) any {
	switch f.Type {
	case "MULTI_SELECT":
		list := []any{}
		if text == "" {
			return list
		}
		for _, one := range strings.Split(text, ",") {
			list = append(list, one)
		}
		return list
	case "BOOLEAN":
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	case "WIDTH_HEIGHT":
		width, height, ok := strings.Cut(text, "x")
		w, errWidth := strconv.ParseInt(width, 10, 64)
		h, errHeight := strconv.ParseInt(height, 10, 64)
		if ok && errWidth == nil && errHeight == nil {
			return map[string]any{"width": w, "height": h}
		}
	case "SLIDER", "UPSCALE_FACTOR_SLIDER", "CFG", "STEPS", "NUM", "SEED":
		if json.Valid([]byte(text)) {
			return plainNumbers(json.Number(text))
		}
	}
	return text
}

// parseMedia returns the input for a file, an earlier result or an upload.
func parseMedia(f catalog.Field, text string) (any, error) {
	if id, ok := strings.CutPrefix(text, "result:"); ok {
		return client.LibraryInput(id), nil
	}
	if id, ok := strings.CutPrefix(text, "upload:"); ok {
		return client.UploadInput(id), nil
	}
	path := strings.TrimPrefix(text, "@")
	if err := checkRegular(path); err != nil {
		return nil, err
	}
	if err := checkMediaType(path, f.Display.Accept); err != nil {
		return nil, err
	}
	return client.FileAt(path), nil
}

// checkMediaType returns an error if the beginning of a file is surely of a type
// that the field does not accept. The service decides in all other cases.
func checkMediaType(path string, accept []string) error {
	if len(accept) == 0 {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	start := make([]byte, 512)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	kind, _, _ := strings.Cut(http.DetectContentType(start[:n]), ";")
	if usual, ok := map[string]string{"audio/wave": "audio/wav", "application/ogg": "audio/ogg"}[kind]; ok {
		kind = usual
	}
	isCertain := slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav", "audio/mpeg", "video/webm", "text/plain", "text/html", "application/pdf"}, kind)
	if isCertain && !slices.Contains(accept, kind) {
		return fmt.Errorf("%s is %s; this field accepts %s", path, kind, strings.Join(accept, ", "))
	}
	return nil
}

// hasFile reports whether an input is a file that is sent with the request.
func hasFile(value any) bool {
	switch v := value.(type) {
	case client.File:
		return true
	case []any:
		return slices.ContainsFunc(v, hasFile)
	}
	return false
}

// fileExtension returns the file name extension for a MIME type.
func fileExtension(mimeType string) string {
	usual := map[string]string{
		"image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp", "video/mp4": ".mp4", "video/webm": ".webm",
		"audio/wav": ".wav", "audio/mpeg": ".mp3", "text/plain": ".txt", "model/gltf-binary": ".glb",
	}
	if e, ok := usual[mimeType]; ok {
		return e
	}
	if all, err := mime.ExtensionsByType(mimeType); err == nil && len(all) > 0 {
		return all[0]
	}
	return ".bin"
}
