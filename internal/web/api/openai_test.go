package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/testkit/watch"
	"atelier/internal/web/api"
	"atelier/internal/web/api/wire"
)

// openAITools are tools for every endpoint under /v1.
var openAITools = files(
	"paint.yaml", manifest("Paint", `num_results: {max: 4}
openai: {models: [dall-e-3, gpt-image-1]}
fields:
  - {key: prompt, type: PROMPT, label: Prompt, required: true}
  - {key: size, type: WIDTH_HEIGHT, label: Size, sizes: [{text: A, width: 512, height: 512}]}
  - {key: seed, type: SEED, label: Seed}
  - {key: script, type: TEXT_AREA, label: Script}
`),
	"repaint.yaml", manifest("Repaint", `fields:
  - {key: prompt, type: PROMPT, label: Prompt, required: true}
  - {key: picture, type: IMG, label: Picture, required: true}
  - {key: mask, type: IMG, label: Mask}
  - {key: script, type: TEXT_AREA, label: Script}
`),
	"flip.yaml", manifest("Flip", `fields:
  - {key: picture, type: IMG, label: Picture, required: true}
  - {key: script, type: TEXT_AREA, label: Script}
`),
	"talk.yaml", strings.Replace(manifest("Talk", `fields:
  - {key: text, type: TEXT_AREA, label: Text, required: true}
  - {key: voice, type: SINGLE_SELECT, label: Voice, default: man, options: [{text: Man, value: man}, {text: Woman, value: woman}]}
  - {key: script, type: TEXT_AREA, label: Script}
`), "IMG, mime_types: [image/png]", "AUDIO, mime_types: [audio/wav]", 1),
	"film.yaml", strings.Replace(manifest("Film", `fields:
  - {key: prompt, type: PROMPT, label: Prompt, required: true}
  - {key: start, type: IMG, label: Start}
  - {key: seconds, type: NUM, label: Seconds, min: 1, max: 12, default: 4}
  - {key: size, type: WIDTH_HEIGHT, label: Size, sizes: [{text: A, width: 1280, height: 720}]}
  - {key: script, type: TEXT_AREA, label: Script}
`), "IMG, mime_types: [image/png]", "VID, mime_types: [video/mp4]", 1),
	"read.yaml", strings.Replace(manifest("Read", ""), "IMG, mime_types: [image/png]", "TEXT, mime_types: [text/plain]", 1),
)

// eachOpenAIFixture runs fn on both databases with somebody who works.
func eachOpenAIFixture(t *testing.T, fn func(m *runFixture)) {
	eachRunFixture(t, func(_ *testing.T, m *runFixture) {
		m.setCatalog(openAITools)
		m.work()
		fn(m)
	})
}

// shortFilm is an MP4 file of one second.
func shortFilm(t *testing.T) []byte {
	t.Helper()
	program, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("ffmpeg is not installed (Debian: apt-get install ffmpeg)")
	}
	path := filepath.Join(t.TempDir(), "film.mp4")
	if out, err := exec.CommandContext(t.Context(), program, "-v", "error", "-f", "lavfi", "-i", "color=red:s=64x48:d=1", path).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	film, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return film
}

// openAIError is an error in the form of the OpenAI API.
type openAIError struct {
	Error struct {
		Message, Type, Code string
		Param               *string
		Atelier             wire.ErrorBody
	}
}

// post sends a JSON body to an endpoint under /v1.
func (m *runFixture) post(endpoint, body string, header ...string) answer {
	m.t.Helper()
	return m.send("POST", "/v1/"+endpoint, "application/json", strings.NewReader(body), header...)
}

// refused fails the test unless the answer is an error with the given status,
// code and parameter.
func (m *runFixture) refused(what string, a answer, status int, code, param string) openAIError {
	m.t.Helper()
	e := decodeAnswer[openAIError](m.t, a)
	got := ""
	if e.Error.Param != nil {
		got = *e.Error.Param
	}
	if a.StatusCode != status || e.Error.Code != code || got != param || e.Error.Message == "" || e.Error.Type == "" {
		m.t.Errorf("%s = %d %s, want %d %s about %q", what, a.StatusCode, a.body, status, code, param)
	}
	return e
}

type openAIImages struct {
	Created int64
	Size    string
	Data    []struct {
		URL     string
		B64JSON string `json:"b64_json"`
	}
	Usage struct {
		TotalTokens int64 `json:"total_tokens"`
	}
}

func TestOpenAIModels(t *testing.T) {
	eachOpenAIFixture(t, func(m *runFixture) {
		type model struct {
			ID, Object, Name string
			OwnedBy          string `json:"owned_by"`
			Endpoints        []string
		}
		got := map[string]string{}
		for _, one := range getJSON[struct{ Data []model }](m.service, "/v1/models").Data {
			if one.Object != "model" || one.OwnedBy != "atelier" {
				m.t.Errorf("model = %+v", one)
			}
			got[one.ID] = one.Name + " " + strings.Join(one.Endpoints, " ")
		}
		want := map[string]string{
			"paint": "Paint images/generations", "dall-e-3": "Paint images/generations", "gpt-image-1": "Paint images/generations", "repaint": "Repaint images/edits", "flip": "Flip images/edits images/variations",
			"talk": "Talk audio/speech", "film": "Film videos", "read": "Read ",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			m.t.Errorf("models = %v, want %v", got, want)
		}
		if one := getJSON[model](m.service, "/v1/models/dall-e-3"); one.ID != "dall-e-3" || one.Name != "Paint" {
			m.t.Errorf("model = %+v", one)
		}
		m.refused("an unknown model", m.sendRequest("GET", "/v1/models/nothing"), 404, "model_not_found", "model")
		m.refused("an unknown address", m.sendRequest("GET", "/v1/chat/completions"), 404, "not_found", "")
		m.refused("a wrong method", m.sendRequest("DELETE", "/v1/models"), 405, "method_not_allowed", "")
	})
}

func TestOpenAIImages(t *testing.T) {
	eachOpenAIFixture(t, func(m *runFixture) {
		a := m.post("images/generations", `{"model":"dall-e-3","prompt":"a fox","n":2,"size":"1024x1024","seed":7}`)
		got := decodeAnswer[openAIImages](m.t, a)
		if a.StatusCode != 200 || len(got.Data) != 2 || got.Data[0].URL == "" || got.Usage.TotalTokens != 6 {
			m.t.Fatalf("images = %d %s", a.StatusCode, a.body)
		}
		if file := m.fetch("GET", got.Data[0].URL); file.StatusCode != 200 || file.Header.Get("Content-Type") != "image/png" {
			m.t.Errorf("file = %d", file.StatusCode)
		}
		id := a.Header.Get("X-Request-Id")
		one := getJSON[wire.Generation](m.service, "/api/v2/generate/"+id+"?include=inputs")
		inputs := string(*one.Inputs)
		if one.TokensCharged != 6 || one.Seed != 7 || *one.Prompt != "a fox" || !strings.Contains(inputs, "512") {
			m.t.Errorf("run = %+v, inputs %s", one, inputs)
		}
		var plugin string
		if err := m.db.QueryRow(m.t.Context(), `SELECT plugin FROM run WHERE id = $1`, id).Scan(&plugin); err != nil || plugin != "openai" {
			m.t.Errorf("plugin = %q, %v", plugin, err)
		}

		for _, body := range []string{
			`{"model":"paint","prompt":"a fox","response_format":"b64_json"}`,
			`{"model":"paint","prompt":"a fox","quality":"auto","background":"auto","moderation":"low"}`, // as for gpt-image-1
			`{"prompt":"a fox","response_format":"b64_json"}`,                                            // the first model that fits
		} {
			a := m.post("images/generations", body)
			got := decodeAnswer[openAIImages](m.t, a)
			if len(got.Data) != 1 || got.Data[0].URL != "" {
				m.t.Fatalf("%s = %d %s", body, a.StatusCode, a.body)
			}
			if data, err := base64.StdEncoding.DecodeString(got.Data[0].B64JSON); err != nil || !bytes.HasPrefix(data, []byte("\x89PNG")) {
				m.t.Errorf("%s: the picture is %.10q, %v", body, data, err)
			}
		}
	})
}

func TestOpenAIEdits(t *testing.T) {
	eachOpenAIFixture(t, func(m *runFixture) {
		png := string(picture(20, 10))
		text := func(name, value string) part { return part{name: name, data: value} }
		image := func(name string) part { return part{name: name, file: "a.png", kind: "image/png", data: png} }
		edit := func(endpoint string, parts ...part) answer {
			kind, body := form(parts...)
			return m.send("POST", "/v1/images/"+endpoint, kind, body)
		}
		echo := text("script", `[{"output":{"echo":"picture"}}]`)
		for _, name := range []string{"image", "image[]", "images[]"} {
			a := edit("edits", text("model", "repaint"), text("prompt", "red"), image(name), image("mask"), echo)
			got := decodeAnswer[openAIImages](m.t, a)
			if a.StatusCode != 200 || len(got.Data) != 1 || got.Size != "20x10" {
				m.t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
			}
		}
		a := edit("variations", text("model", "flip"), image("image"), text("response_format", "b64_json"), echo)
		if got := decodeAnswer[openAIImages](m.t, a); a.StatusCode != 200 || len(got.Data) != 1 || got.Data[0].B64JSON == "" {
			m.t.Errorf("variation = %d %s", a.StatusCode, a.body)
		}

		before := m.state()
		m.refused("a mask without a picture", edit("edits", text("model", "repaint"), text("prompt", "red"), image("mask")), 400, "invalid_request", "mask")
		m.refused("two pictures", edit("edits", text("model", "repaint"), text("prompt", "red"), image("image[]"), image("image[]")), 400, "invalid_request", "image")
		m.refused("no picture", edit("edits", text("model", "repaint"), text("prompt", "red")), 400, "invalid_request", "image")
		m.refused("a picture by address", edit("edits", text("model", "repaint"), text("prompt", "red"), text("image[image_url]", "https://x.example/a.png")), 400, "invalid_request", "image")
		m.refused("no picture at all", edit("edits", text("model", "repaint"), text("prompt", "red"), part{name: "image", file: "a.png", data: "hello"}), 415, "unsupported_media_type", "")
		m.refused("a parameter twice", edit("edits", text("model", "repaint"), text("model", "repaint"), image("image")), 400, "invalid_request", "model")
		if after := m.state(); after != before {
			m.t.Errorf("refused requests leave something:\n%s\nbefore:\n%s", after, before)
		}
	})
}

// events reads the events of a stream.
func events(body []byte) (names []string, data []map[string]any) {
	for block := range strings.SplitSeq(string(body), "\n\n") {
		name, text, ok := strings.Cut(strings.TrimPrefix(block, "event: "), "\ndata: ")
		if !ok {
			continue
		}
		var v map[string]any
		if json.Unmarshal([]byte(text), &v) != nil {
			v = map[string]any{"invalid": text}
		}
		names = append(names, name)
		data = append(data, v)
	}
	return names, data
}

func TestOpenAIStream(t *testing.T) {
	eachOpenAIFixture(t, func(m *runFixture) {
		script := `[{"preview":true},{"wait":"1200ms"},{"output":{"kind":"png","width":64,"height":48}}]`
		a := m.post("images/generations", fmt.Sprintf(`{"model":"paint","prompt":"a fox","stream":true,"partial_images":1,"script":%q}`, script))
		names, data := events(a.body)
		if a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/event-stream" || strings.Join(names, " ") != "image_generation.partial_image image_generation.completed" {
			m.t.Fatalf("events = %d %q %.300s", a.StatusCode, names, a.body)
		}
		if data[0]["type"] != names[0] || data[0]["partial_image_index"] != 0.0 || data[0]["b64_json"] == "" || data[1]["size"] != "64x48" {
			m.t.Errorf("events = %.500v", data)
		}
		if usage, _ := data[1]["usage"].(map[string]any); usage["total_tokens"] != 3.0 {
			m.t.Errorf("usage = %v", data[1]["usage"])
		}
		a = m.post("images/generations", fmt.Sprintf(`{"model":"paint","prompt":"a fox","stream":true,"script":%q}`, `[{"fail":{"code":"ENGINE_FAILED","message":"no colours"}}]`))
		if names, data := events(a.body); strings.Join(names, " ") != "error" || !strings.Contains(fmt.Sprint(data), "no colours") {
			m.t.Errorf("events of a failed run = %s", a.body)
		}
	})
}

func TestOpenAISpeech(t *testing.T) {
	eachOpenAIFixture(t, func(m *runFixture) {
		script := `[{"output":{"kind":"wav","seconds":1}}]`
		body := func(more string) string {
			return fmt.Sprintf(`{"model":"talk","input":"hello","voice":"alloy","script":%q%s}`, script, more)
		}
		a := m.post("audio/speech", body(""))
		if a.StatusCode != 200 || a.Header.Get("Content-Type") != "audio/wav" || !bytes.HasPrefix(a.body, []byte("RIFF")) || a.Header.Get("X-Request-Id") == "" {
			m.t.Fatalf("speech = %d %.100q", a.StatusCode, a.body)
		}
		names, data := events(m.post("audio/speech", body(`,"stream_format":"sse"`)).body)
		var sound []byte
		for i, name := range names {
			if name == "speech.audio.delta" {
				part, err := base64.StdEncoding.DecodeString(data[i]["audio"].(string))
				if err != nil {
					m.t.Fatal(err)
				}
				sound = append(sound, part...)
			}
		}
		if len(names) < 2 || names[len(names)-1] != "speech.audio.done" || len(sound) != len(a.body) || !bytes.HasPrefix(sound, []byte("RIFF")) {
			m.t.Errorf("events = %q, %d bytes, want %d", names, len(sound), len(a.body))
		}
		m.refused("a format that the model does not make", m.post("audio/speech", body(`,"response_format":"mp3"`)), 400, "invalid_request", "response_format")
		if a := m.post("audio/speech", body(`,"response_format":"wav"`)); a.StatusCode != 200 {
			m.t.Errorf("wav = %d %s", a.StatusCode, a.body)
		}
	})
}

func TestOpenAIVideos(t *testing.T) {
	eachOpenAIFixture(t, func(m *runFixture) {
		type video struct {
			ID, Object, Model, Status, Size, Seconds string
			Progress                                 int64
			Error                                    *struct{ Code string }
		}
		kind, body := form(part{name: "model", data: "film"}, part{name: "prompt", data: "a fox"}, part{name: "seconds", data: "8"}, part{name: "size", data: "1280x720"},
			part{name: "script", data: `[{"output":{"kind":"raw","base64":"` + base64.StdEncoding.EncodeToString(shortFilm(m.t)) + `"}}]`})
		a := m.send("POST", "/v1/videos", kind, body)
		made := decodeAnswer[video](m.t, a)
		if a.StatusCode != 200 || made.Object != "video" || made.Model != "film" || made.Size != "1280x720" || made.Seconds != "8" || made.ID != a.Header.Get("X-Request-Id") {
			m.t.Fatalf("video = %d %s", a.StatusCode, a.body)
		}
		m.finish("", made.ID)
		if got := getJSON[video](m.service, "/v1/videos/"+made.ID); got.Status != "completed" || got.Progress != 100 {
			m.t.Errorf("video = %+v", got)
		}
		if file := m.sendRequest("GET", "/v1/videos/"+made.ID+"/content"); file.StatusCode != 200 || file.Header.Get("Content-Type") != "video/mp4" || len(file.body) == 0 {
			m.t.Errorf("content = %d %.100q", file.StatusCode, file.body)
		}
		hung := decodeAnswer[video](m.t, m.post("videos", `{"model":"film","prompt":"a fox","script":"[{\"hang\":true}]"}`))
		m.refused("a video that is not ready", m.sendRequest("GET", "/v1/videos/"+hung.ID+"/content"), 409, "video_not_ready", "")
		failed := decodeAnswer[video](m.t, m.post("videos", `{"model":"film","prompt":"a fox","script":"[{\"fail\":{\"code\":\"ENGINE_FAILED\",\"message\":\"no film\"}}]"}`))
		m.finish("", failed.ID)
		if got := getJSON[video](m.service, "/v1/videos/"+failed.ID); got.Status != "failed" || got.Error == nil || got.Error.Code != "ENGINE_FAILED" {
			m.t.Errorf("failed video = %+v", got)
		}

		type list struct {
			Data    []video
			HasMore bool   `json:"has_more"`
			LastID  string `json:"last_id"`
		}
		page := getJSON[list](m.service, "/v1/videos?limit=2")
		if len(page.Data) != 2 || !page.HasMore || page.Data[0].ID != failed.ID {
			m.t.Fatalf("videos = %+v", page)
		}
		if rest := getJSON[list](m.service, "/v1/videos?limit=2&after="+page.LastID); len(rest.Data) != 1 || rest.HasMore || rest.Data[0].ID != made.ID {
			m.t.Errorf("more videos = %+v", rest)
		}
		for _, id := range []string{made.ID, hung.ID} {
			if a := m.send("DELETE", "/v1/videos/"+id, "", nil); a.StatusCode != 200 || !strings.Contains(string(a.body), `"deleted":true`) {
				m.t.Errorf("delete = %d %s", a.StatusCode, a.body)
			}
		}
		m.refused("a deleted video", m.sendRequest("GET", "/v1/videos/"+made.ID), 404, "not_found", "video_id")
		if one := m.finish("", hung.ID); one.Status != "cancelled" {
			m.t.Errorf("the deleted video that ran = %s", one.Status)
		}
		picture := m.post("images/generations", `{"model":"paint","prompt":"a fox"}`).Header.Get("X-Request-Id")
		m.refused("a run that is no video", m.sendRequest("GET", "/v1/videos/"+picture), 404, "not_found", "video_id")
	})
}

func TestOpenAIRefusals(t *testing.T) {
	eachOpenAIFixture(t, func(m *runFixture) {
		m.post("images/generations", `{"model":"paint","prompt":"x"}`) // from then on the worker is known
		before := m.state()
		for _, one := range []struct {
			what, endpoint, body string
			status               int
			code, param          string
		}{
			{"an unknown model", "images/generations", `{"model":"nothing","prompt":"x"}`, 404, "model_not_found", "model"},
			{"a model for something else", "images/generations", `{"model":"talk","prompt":"x"}`, 400, "invalid_request", "model"},
			{"an unknown size", "images/generations", `{"model":"paint","prompt":"x","size":"1024x1792"}`, 400, "invalid_request", "size"},
			{"too many pictures", "images/generations", `{"model":"paint","prompt":"x","n":5}`, 400, "invalid_value", "n"},
			{"a number of pictures that is none", "images/generations", `{"model":"paint","prompt":"x","n":"many"}`, 400, "invalid_request", "n"},
			{"several results of a model that makes one", "videos", `{"model":"film","prompt":"x","n":2}`, 400, "invalid_request", "n"},
			{"an unknown parameter", "images/generations", `{"model":"paint","prompt":"x","colour":"red"}`, 400, "invalid_request", "colour"},
			{"no prompt", "images/generations", `{"model":"paint"}`, 400, "invalid_request", "prompt"},
			{"an unknown format", "images/generations", `{"model":"paint","prompt":"x","response_format":"gif"}`, 400, "invalid_request", "response_format"},
			{"too many previews", "images/generations", `{"model":"paint","prompt":"x","stream":true,"partial_images":9}`, 400, "invalid_request", "partial_images"},
			{"no object", "images/generations", `[]`, 400, "invalid_request", "body"},
			{"no JSON", "images/generations", `{`, 400, "invalid_request", "body"},
			{"a picture where none is taken", "images/generations", `{"model":"paint","prompt":"x","image":"abcdefghij0123456789"}`, 400, "invalid_request", "image"},
			{"words that are not allowed", "images/generations", `{"model":"paint","prompt":"child porn"}`, 400, "content_policy_violation", "prompt"},
		} {
			a := m.post(one.endpoint, one.body)
			m.refused(one.what, a, one.status, one.code, one.param)
			if a.Header.Get("X-Should-Retry") != "false" {
				m.t.Errorf("%s: the client is told to send it again", one.what)
			}
		}
		if after := m.state(); after != before {
			m.t.Errorf("refused requests leave something:\n%s\nbefore:\n%s", after, before)
		}
		poor := m.as(m.addPerson("poor@example.com"))
		poor.refused("no tokens", poor.post("images/generations", `{"model":"paint","prompt":"x"}`), 429, "insufficient_quota", "")
		stranger := m.as("ate_nothing")
		stranger.refused("a wrong key", stranger.post("images/generations", `{"model":"paint","prompt":"x"}`), 401, "invalid_api_key", "")
		m.refused("a failed run", m.post("images/generations", `{"model":"paint","prompt":"x","script":"[{\"fail\":{\"code\":\"ENGINE_FAILED\",\"message\":\"no colours\"}}]"}`), 500, "engine_failed", "")
	})
}

// TestOpenAIRepeats: the official clients send no idempotency key, and count
// how often they have sent a request.
func TestOpenAIRepeats(t *testing.T) {
	eachOpenAIFixture(t, func(m *runFixture) {
		const body = `{"model":"paint","prompt":"a fox"}`
		repeat := func(body string, header ...string) string {
			a := m.post("images/generations", body, header...)
			if a.StatusCode != 200 {
				m.t.Errorf("images = %d %s", a.StatusCode, a.body)
			}
			return a.Header.Get("X-Request-Id")
		}
		first := repeat(body, "X-Stainless-Retry-Count", "0")
		second := repeat(body, "X-Stainless-Retry-Count", "0")
		if first == second {
			m.t.Error("two requests have one run")
		}
		var group sync.WaitGroup
		for i := range 64 {
			group.Go(func() {
				if id := repeat(body, "X-Stainless-Retry-Count", fmt.Sprint(1+i%2)); id != second {
					m.t.Errorf("a repeated request has the run %s, want %s", id, second)
				}
			})
		}
		group.Wait()
		// Requests that never arrived before.
		ids := make([]string, 16)
		for i := range ids {
			group.Go(func() { ids[i] = repeat(`{"model":"paint","prompt":"an owl"}`, "X-Stainless-Retry-Count", "1") })
		}
		group.Wait()
		for _, id := range ids {
			if id != ids[0] || id == "" {
				m.t.Errorf("runs = %q", ids)
				break
			}
		}
		key := repeat(`{"model":"paint","prompt":"a cat"}`, "Idempotency-Key", "k1")
		if again := repeat(`{"model":"paint","prompt":"a cat"}`, "Idempotency-Key", "k1"); again != key {
			m.t.Error("a key makes a second run")
		}
		m.refused("a key with another request", m.post("images/generations", `{"model":"paint","prompt":"a dog"}`, "Idempotency-Key", "k1"), 409, "idempotency_key_conflict", "")
		if n := getJSON[wire.GenerationList](m.service, "/api/v2/generations?limit=100"); len(n.Data) != 4 {
			m.t.Errorf("%d runs, want 4", len(n.Data))
		}
	})
}

// TestOpenAIClientLeaves: the run of a client that leaves is cancelled, unless
// the client says otherwise or another one waits for it.
func TestOpenAIClientLeaves(t *testing.T) {
	eachOpenAIFixture(t, func(m *runFixture) {
		leave := func(prompt string, header ...string) string {
			ctx, cancel := context.WithCancel(m.t.Context())
			defer cancel()
			body := fmt.Sprintf(`{"model":"paint","prompt":%q,"script":"[{\"hang\":true}]"}`, prompt)
			r, err := http.NewRequestWithContext(ctx, "POST", m.url+"/v1/images/generations", strings.NewReader(body))
			if err != nil {
				m.t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+m.token)
			r.Header.Set("Content-Type", "application/json")
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			ended := make(chan error, 1)
			go func() {
				res, err := m.client.Do(r)
				if err == nil {
					_, err = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
				ended <- err
			}()
			var id string
			watch.Until(m.t, "the run", func() bool {
				err := m.db.QueryRow(m.t.Context(), `SELECT id FROM run WHERE prompt = $1 AND stage = 'running'`, prompt).Scan(&id)
				return err == nil
			})
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				m.t.Errorf("the client that left got %v", err)
			}
			return id
		}
		state := func(id string) string {
			return string(getJSON[wire.Generation](m.service, "/api/v2/generate/"+id).Status)
		}
		kept := leave("kept", "X-Atelier-Keep-Run", "true")
		left := leave("left")
		watch.Until(m.t, "the cancelled run", func() bool { return state(left) == "cancelled" })
		time.Sleep(time.Second) // as long as a poll
		if got := state(kept); got != "pending" {
			m.t.Errorf("the run that was to be kept is %s", got)
		}
		m.send("POST", "/api/v2/generate/"+kept+"/cancel", "", nil)
	})
}

// TestOpenAILongRuns turns the server's clock back by nearly the time that a body
// has to begin with: a response waits for longer than that.
func TestOpenAILongRuns(t *testing.T) {
	t.Parallel()
	m := newRunFixture(t, dbtest.Open(t, dbtest.URL(t, "sqlite")), limits, setHighLimits)
	m.setCatalog(openAITools)
	m.work()
	slow := m.with(func(p *api.Parts) {
		p.Now = func() time.Time { return time.Now().Add(-30*time.Second + 300*time.Millisecond) }
	}, nil)
	for _, more := range []string{"", `,"stream":true`} {
		body := `{"model":"paint","prompt":"a fox","script":"[{\"wait\":\"1500ms\"},{\"output\":{\"kind\":\"png\",\"width\":8,\"height\":8}}]"` + more + `}`
		a := slow.send("POST", "/v1/images/generations", "application/json", strings.NewReader(body))
		if a.StatusCode != 200 || !strings.Contains(string(a.body), `"total_tokens":3`) {
			t.Errorf("images%s = %d %.300s", more, a.StatusCode, a.body)
		}
	}
}

// TestOpenAIFrontEnds sends what Open WebUI and LibreChat send for pictures, and
// looks at what they look at in the response.
func TestOpenAIFrontEnds(t *testing.T) {
	eachOpenAIFixture(t, func(m *runFixture) {
		png := string(picture(20, 10))
		text := func(name, value string) part { return part{name: name, data: value} }
		edit := func(path string, parts ...part) answer {
			kind, body := form(append(parts, text("script", `[{"output":{"echo":"picture"}}]`))...)
			return m.send("POST", path, kind, body)
		}
		for _, one := range []struct {
			what   string
			answer answer
			inline bool // the front end reads b64_json
		}{
			{"Open WebUI", m.post("images/generations", `{"model":"paint","prompt":"a fox","n":1,"size":"512x512","response_format":"b64_json"}`), true},
			{"Open WebUI with a version", m.post("images/generations?api-version=2025-04-01-preview", `{"model":"gpt-image-1","prompt":"a fox","n":1,"size":"1024x1024"}`), false},
			{"Open WebUI, an edit", edit("/v1/images/edits", text("model", "repaint"), text("prompt", "red"), text("n", "1"), text("size", "512x512"), text("response_format", "b64_json"),
				part{name: "image", file: "image.png", kind: "image/png", data: png}), true},
			{"LibreChat, DALL-E 3", m.post("images/generations", `{"model":"dall-e-3","quality":"standard","style":"vivid","size":"1024x1024","prompt":"a fox","n":1}`), false},
			{"LibreChat, gpt-image-1", m.post("images/generations", `{"model":"gpt-image-1","prompt":"a fox","n":1,"background":"auto","output_format":"png","quality":"auto","size":"auto"}`), true},
			{"LibreChat, an edit", edit("/v1/images/edits", text("model", "repaint"), text("prompt", "red"), text("quality", "auto"), text("size", "auto"),
				part{name: "image[]", file: "fox.png", kind: "image/png", data: png}), true},
		} {
			got := decodeAnswer[openAIImages](m.t, one.answer)
			if one.answer.StatusCode != 200 || len(got.Data) != 1 || one.inline != (got.Data[0].B64JSON != "") || one.inline == (got.Data[0].URL != "") {
				m.t.Errorf("%s = %d %.300s", one.what, one.answer.StatusCode, one.answer.body)
			}
		}
	})
}
