package backend_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"atelier/internal/engine/backend"
)

func TestRefs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer string
		want   []backend.FileRef
	}{
		"a text":                {`"https://a/1.png"`, []backend.FileRef{{URL: "https://a/1.png"}}},
		"a list":                {`["https://a/2.png","data:image/png;base64,AA=="]`, []backend.FileRef{{URL: "https://a/2.png"}, {URL: "data:image/png;base64,AA=="}}},
		"as written":            {`{"z":"https://a/1","a":"http://a/2"}`, []backend.FileRef{{URL: "https://a/1"}, {URL: "http://a/2"}}},
		"objects":               {`{"images":[{"width":3,"url":"https://a/1","content_type":"image/png"},{"url":"https://a/2"}],"seed":4}`, []backend.FileRef{{"https://a/1", "image/png"}, {URL: "https://a/2"}}},
		"objects before texts":  {`{"prompt":"https://evil/","image":{"url":"https://a/1"}}`, []backend.FileRef{{URL: "https://a/1"}}},
		"files of a file":       {`{"mesh":{"textures":[{"url":"https://a/2"}],"url":"https://a/1"}}`, []backend.FileRef{{URL: "https://a/1"}, {URL: "https://a/2"}}},
		"no addresses":          {`{"url":"javascript:x","a":["file:///etc/passwd",1,null,true],"b":{"url":{"url":"/c"}}}`, nil},
		"nothing":               {``, nil},
		"cut off":               {`["https://a/1",{"url":`, []backend.FileRef{{URL: "https://a/1"}}},
		"deeper than one looks": {strings.Repeat("[", 100) + `"https://a/1"`, nil},
	} {
		if got := backend.FindFiles(json.RawMessage(tt.answer)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	poster := backend.FileRef{URL: "https://a/poster.PNG?x=1"}
	video := backend.FileRef{URL: "https://a/file", Type: "video/mp4"}
	inline := backend.FileRef{URL: "data:audio/wav;base64,AA=="}
	mesh := backend.FileRef{URL: "https://a/mesh.glb", Type: "application/octet-stream"}
	all := []backend.FileRef{poster, video, inline, mesh}
	for kind, want := range map[string][]backend.FileRef{"IMG": {poster}, "VID": {video}, "AUDIO": {inline}, "ASSET_3D": {mesh}, "TEXT": all} {
		if got := backend.FilterByType(all, kind); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}

func TestEchoes(t *testing.T) {
	t.Parallel()
	values := map[string]any{
		"prompt": "see http://10.0.0.1/admin, please", "seed": int64(7),
		"more": []any{"data:,a", map[string]any{"link": "https://a/1"}},
	}
	for ref, want := range map[string]bool{
		"http://10.0.0.1/admin": true, "data:,a": true, "https://a/1": true,
		"https://a/2": false, "http://10.0.0.1/admin/more": false,
	} {
		if got := backend.IsEcho(ref, values); got != want {
			t.Errorf("%s: %v, want %v", ref, got, want)
		}
	}
	answer := json.RawMessage(`{"prompt":"http://10.0.0.1/admin","image":"https://a/1.png"}`)
	if got := backend.FindResults(answer, values); !slices.Equal(got, []backend.FileRef{{URL: "https://a/1.png"}}) {
		t.Errorf("made = %v, want what no person wrote", got)
	}
}
