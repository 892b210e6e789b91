package openai

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"atelier/internal/base/fault"
	"atelier/internal/catalog/openaimap"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/rest"
	"atelier/internal/web/httpd"
)

// soundTypes are the MIME types of the values of response_format of speech.
var soundTypes = map[string][]string{
	"aac":  {"audio/aac", "audio/mp4"},
	"flac": {"audio/flac"},
	"mp3":  {"audio/mpeg"},
	"opus": {"audio/ogg", "audio/opus"},
	"wav":  {"audio/wav"},
}

// createSpeech serves POST /v1/audio/speech: it responds with the sound that a
// model makes of a text.
func (h *Handler) createSpeech(w http.ResponseWriter, r *http.Request) error {
	isEvents := false
	_, _, created, err := h.createRun(w, r, openaimap.Speech, func(one *request, m *openaimap.Mapping) error {
		format, err := one.readText("stream_format")
		if err != nil {
			return err
		}
		if format != "" && format != "audio" && format != "sse" {
			return fault.New(fault.Invalid, "stream_format must be audio or sse.").On("stream_format")
		}
		isEvents = format == "sse"
		return checkSoundType(one, m)
	})
	if err != nil {
		return err
	}
	rec, err := h.awaitRun(w, r, created.Run.ID, nil)
	if err != nil {
		return err
	}
	if len(rec.Outputs) == 0 {
		return fmt.Errorf("the run %s has no result", rec.ID)
	}
	if isEvents {
		return h.sendSpeechEvents(w, r, rec)
	}
	return h.sendFile(w, r, rec)
}

// checkSoundType refuses a response_format that the model cannot make. A model
// with a field for it checks the value itself.
func checkSoundType(one *request, m *openaimap.Mapping) error {
	format, err := one.readText("response_format")
	if err != nil || format == "" || m.KeyOf("response_format") != "" {
		return err
	}
	var offered []string
	for name, types := range soundTypes {
		if slices.ContainsFunc(types, func(t string) bool { return slices.Contains(m.Tool.Output.MimeTypes, t) }) {
			offered = append(offered, name)
		}
	}
	if slices.Contains(offered, format) {
		return nil
	}
	slices.Sort(offered)
	return fault.New(fault.Invalid, "response_format is not offered; this model offers "+strings.Join(offered, ", ")+".").On("response_format")
}

// sendFile responds with the first result of a run.
func (h *Handler) sendFile(w http.ResponseWriter, r *http.Request, rec generation.Record) error {
	result := rec.Outputs[0]
	file, err := h.openFile(r, result)
	if err != nil {
		return err
	}
	defer file.Close()
	return h.sendContent(w, file, result.MimeType, result.Size)
}

// sendContent responds with the content of a file.
func (h *Handler) sendContent(w http.ResponseWriter, file io.Reader, mimeType string, size int64) error {
	header := w.Header()
	header.Set("Content-Type", mimeType)
	header.Set("Content-Length", strconv.FormatInt(size, 10))
	rest.VaryByCaller(header)
	_, err := io.Copy(httpd.NewDeadlineWriter(w, h.Now, writeGrace), file)
	return err
}

// soundChunk is the number of bytes in one event. It is a multiple of 3, so that
// only the last event has padding.
const soundChunk = 48 << 10

// sendSpeechEvents responds with the sound as events.
func (h *Handler) sendSpeechEvents(w http.ResponseWriter, r *http.Request, rec generation.Record) error {
	file, err := h.openFile(r, rec.Outputs[0])
	if err != nil {
		return err
	}
	defer file.Close()
	rest.SetStreamHeaders(w.Header())
	rest.VaryByCaller(w.Header())
	out := httpd.NewDeadlineWriter(w, h.Now, writeGrace)
	chunk := make([]byte, soundChunk)
	for {
		n, err := io.ReadFull(file, chunk)
		if n > 0 {
			text := base64.StdEncoding.EncodeToString(chunk[:n])
			if _, err := fmt.Fprintf(out, "event: speech.audio.delta\ndata: {\"type\":\"speech.audio.delta\",\"audio\":%q}\n\n", text); err != nil {
				return err
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return err
		}
	}
	price := usageOf(rec)
	_, err = fmt.Fprintf(out, "event: speech.audio.done\ndata: {\"type\":\"speech.audio.done\",\"usage\":{\"input_tokens\":0,\"output_tokens\":%d,\"total_tokens\":%d}}\n\n", price.OutputTokens, price.TotalTokens)
	return err
}
