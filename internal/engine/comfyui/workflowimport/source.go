package workflowimport

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"atelier/internal/engine/backend"
)

// workflowSource is a workflow as it was read from a file or the server: in API
// format, in the format of the editor, or in both.
type workflowSource struct {
	origin string // where the workflow was read from, for the report
	api    []byte
	editor []byte
	plain  bool // the file itself is the workflow in API format
}

// findWorkflow finds the workflow in a file: JSON in one of ComfyUI's formats,
// or a media file that ComfyUI made, which contains the workflow in its
// metadata.
func findWorkflow(data []byte) (workflowSource, error) {
	if len(data) > maxSourceBytes {
		return workflowSource{}, fmt.Errorf("the file is larger than %d MB", maxSourceBytes>>20)
	}
	if bytes.HasPrefix(data, []byte(pngSignature)) {
		return findInPNG(data)
	}
	if text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))); len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		return findInJSON(text)
	}
	if src, ok := findInMedia(data); ok {
		return src, nil
	}
	return workflowSource{}, errors.New("the file is not JSON, and it is not a media file with a ComfyUI workflow in its metadata")
}

// findInJSON recognizes the format of a workflow in JSON.
func findInJSON(text []byte) (workflowSource, error) {
	if len(text) > maxWorkflowBytes {
		return workflowSource{}, fmt.Errorf("the workflow is larger than %d MB", maxWorkflowBytes>>20)
	}
	var raw map[string]json.RawMessage
	err := decodeJSON(text, &raw)
	if err != nil {
		text = replaceNaN(text)
		err = decodeJSON(text, &raw)
	}
	if err != nil {
		return workflowSource{}, fmt.Errorf("the workflow is not JSON: %w", err)
	}
	if isEditorFormat(raw) {
		return workflowSource{origin: "a workflow of the editor", editor: text}, nil
	}
	for _, key := range []string{"prompt", "output"} { // the body of a prompt request, or the front end's own export
		if !isAPIFormat(raw[key]) {
			continue
		}
		src := workflowSource{origin: "a prompt request", api: raw[key]}
		var extra struct {
			Workflow  json.RawMessage `json:"workflow"`
			ExtraData struct {
				Info struct {
					Workflow json.RawMessage `json:"workflow"`
				} `json:"extra_pnginfo"`
			} `json:"extra_data"`
		}
		if decodeJSON(text, &extra) == nil {
			src.editor = extra.Workflow
			if len(src.editor) == 0 {
				src.editor = extra.ExtraData.Info.Workflow
			}
		}
		return src, nil
	}
	return workflowSource{origin: "a workflow in API format", api: text, plain: true}, nil
}

func isEditorFormat(raw map[string]json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimSpace(raw["nodes"]), []byte("["))
}

// isAPIFormat reports whether text is a graph in API format.
func isAPIFormat(text []byte) bool {
	var nodes map[string]struct {
		Class  string         `json:"class_type"`
		Inputs map[string]any `json:"inputs"`
	}
	if len(text) == 0 || json.Unmarshal(text, &nodes) != nil || len(nodes) == 0 {
		return false
	}
	for _, n := range nodes {
		if n.Class == "" {
			return false
		}
	}
	return true
}

// replaceNaN replaces NaN and infinite numbers, which Python writes although
// they are not valid JSON, with null. Text in quotation marks stays unchanged.
func replaceNaN(text []byte) []byte {
	out := make([]byte, 0, len(text))
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
			c = text[i]
		case c == '"':
			quoted = !quoted
		case !quoted:
			replaced := false
			for _, word := range []string{"NaN", "-Infinity", "Infinity"} {
				if bytes.HasPrefix(text[i:], []byte(word)) {
					out = append(out, "null"...)
					i += len(word) - 1
					replaced = true
					break
				}
			}
			if replaced {
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

const pngSignature = "\x89PNG\r\n\x1a\n"

// findInPNG reads the text chunks prompt (API format) and workflow (format of
// the editor), which ComfyUI writes into the pictures that it saves.
func findInPNG(data []byte) (workflowSource, error) {
	texts := map[string][]byte{}
	rest := data[len(pngSignature):]
	for len(rest) >= 12 {
		size := int64(binary.BigEndian.Uint32(rest))
		kind := string(rest[4:8])
		if size > int64(len(rest)-12) {
			break
		}
		chunk := rest[8 : 8+size]
		rest = rest[12+size:]
		if key, text, ok := textOfChunk(kind, chunk); ok && texts[key] == nil {
			texts[key] = text
		}
		if kind == "IEND" {
			break
		}
	}
	src := workflowSource{origin: "a picture made by ComfyUI"}
	if text := texts["prompt"]; isAPIFormat(text) {
		src.api = text
	} else if text = replaceNaN(text); isAPIFormat(text) {
		src.api = text
	}
	var raw map[string]json.RawMessage
	if text := texts["workflow"]; decodeJSON(text, &raw) == nil && isEditorFormat(raw) {
		src.editor = text
	}
	if src.api == nil && src.editor == nil {
		return workflowSource{}, errors.New("the picture contains no workflow; ComfyUI writes one into the PNG files that it saves, but other programs remove it")
	}
	return src, nil
}

// textOfChunk returns the keyword and the text of a PNG text chunk (PNG
// specification, section 11.3.3).
func textOfChunk(kind string, chunk []byte) (key string, text []byte, ok bool) {
	if kind != "tEXt" && kind != "zTXt" && kind != "iTXt" {
		return "", nil, false
	}
	word, text, ok := bytes.Cut(chunk, []byte{0})
	key = string(word)
	if !ok || key != "prompt" && key != "workflow" {
		return "", nil, false
	}
	compressed := kind == "zTXt"
	switch kind {
	case "zTXt":
		if len(text) < 1 {
			return "", nil, false
		}
		text = text[1:]
	case "iTXt":
		if len(text) < 2 {
			return "", nil, false
		}
		compressed = text[0] == 1
		text = text[2:]
		for range 2 { // skips the language tag and the translated keyword
			if _, text, ok = bytes.Cut(text, []byte{0}); !ok {
				return "", nil, false
			}
		}
	}
	if compressed {
		r, err := zlib.NewReader(bytes.NewReader(text))
		if err != nil {
			return "", nil, false
		}
		if text, err = io.ReadAll(io.LimitReader(r, maxWorkflowBytes+1)); err != nil {
			return "", nil, false
		}
	}
	return key, text, len(text) <= maxWorkflowBytes
}

// findInMedia searches a media file of any format except PNG for a workflow.
// ComfyUI writes workflows as plain JSON into the metadata of WebP, JPEG, MP4,
// WebM, MP3, FLAC and other files.
func findInMedia(data []byte) (workflowSource, bool) {
	src := workflowSource{origin: "a media file made by ComfyUI"}
	src.api = scanJSON(data, `"class_type"`, isAPIFormat)
	src.editor = scanJSON(data, `"nodes"`, func(text []byte) bool {
		var raw map[string]json.RawMessage
		return json.Unmarshal(text, &raw) == nil && isEditorFormat(raw)
	})
	return src, src.api != nil || src.editor != nil
}

// scanJSON returns the first JSON object for which accept returns true. It
// tries only objects that begin at most window bytes before an occurrence of
// marker in data.
func scanJSON(data []byte, marker string, accept func(text []byte) bool) []byte {
	const (
		window = 1 << 20 // maximum number of bytes between the object's start and the marker
		tries  = 1000
	)
	left := tries
	for at := 0; left > 0; {
		next := bytes.Index(data[at:], []byte(marker))
		if next < 0 {
			return nil
		}
		end := at + next
		low := max(at, end-window)
		for start := low; start < end && left > 0; start++ {
			open := bytes.IndexByte(data[start:end], '{')
			if open < 0 {
				break
			}
			start += open
			if !bytes.HasPrefix(bytes.TrimLeft(data[start+1:min(start+64, len(data))], " \t\r\n"), []byte(`"`)) {
				continue
			}
			left--
			var text json.RawMessage
			d := json.NewDecoder(io.LimitReader(bytes.NewReader(data[start:]), maxWorkflowBytes))
			if d.Decode(&text) != nil {
				continue
			}
			if accept(text) {
				return text
			}
			break // nested objects are parts of this object
		}
		at = end + len(marker)
	}
	return nil
}

// lastRun returns the workflow of the server's newest successful run.
func (fetch FetchJSON) lastRun(ctx context.Context) (workflowSource, error) {
	const newest = 20
	var history map[string]struct {
		Prompt []json.RawMessage `json:"prompt"`
		Status *struct {
			Text     string              `json:"status_str"`
			Messages [][]json.RawMessage `json:"messages"`
		} `json:"status"`
	}
	if err := fetch(ctx, fmt.Sprintf("/history?max_items=%d", newest), &history); err != nil {
		return workflowSource{}, backend.CallFailure(ctx, fmt.Errorf("fetch the history: %w", err))
	}
	src := workflowSource{origin: "the server's last successful run"}
	best := -1.0
	for _, entry := range history {
		if len(entry.Prompt) < 3 || entry.Status == nil || entry.Status.Text != "success" || !isAPIFormat(entry.Prompt[2]) {
			continue
		}
		var number float64
		_ = json.Unmarshal(entry.Prompt[0], &number)
		when := max(number, 0)
		for _, message := range entry.Status.Messages {
			var about struct {
				Timestamp float64 `json:"timestamp"`
			}
			if len(message) == 2 && json.Unmarshal(message[1], &about) == nil {
				when = max(when, about.Timestamp)
			}
		}
		if when <= best {
			continue
		}
		best = when
		src.api = entry.Prompt[2]
		src.editor = nil
		var extra struct {
			Info struct {
				Workflow json.RawMessage `json:"workflow"`
			} `json:"extra_pnginfo"`
		}
		if len(entry.Prompt) > 3 && json.Unmarshal(entry.Prompt[3], &extra) == nil {
			src.editor = extra.Info.Workflow
		}
	}
	if src.api == nil {
		return workflowSource{}, errors.New("the server's history has no successful run; run the workflow once in ComfyUI, or use --workflow")
	}
	return src, nil
}
