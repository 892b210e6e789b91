package backend

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// EachEvent calls each with the name and the data of every server-sent event
// until the stream ends. An event with the data [DONE], which OpenAI-compatible
// servers send last, also ends the stream. The name is empty if the event has
// none. maxBytes is the maximum size of one event.
func EachEvent(r io.Reader, maxBytes int64, each func(name string, data []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, int(maxBytes))
	name := ""
	var data []byte
	for lines.Scan() {
		line := lines.Bytes()
		if rest, ok := bytes.CutPrefix(line, []byte("event:")); ok {
			name = string(bytes.TrimPrefix(rest, []byte(" ")))
			continue
		}
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data == nil {
				data = []byte{}
			} else {
				data = append(data, '\n')
			}
			if data = append(data, bytes.TrimPrefix(rest, []byte(" "))...); int64(len(data)) > maxBytes {
				return ErrTooLarge
			}
			continue
		}
		if len(line) > 0 {
			continue // a comment, or a field that no server needs
		}
		if string(data) == "[DONE]" {
			return nil
		}
		if len(data) > 0 {
			if err := each(name, data); err != nil {
				return err
			}
		}
		name = ""
		data = nil
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return ErrTooLarge
	} else if err != nil {
		return err
	}
	return nil
}
