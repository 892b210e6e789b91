package provenance_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"atelier/internal/file/media"
	"atelier/internal/file/provenance"
)

func statement() provenance.Statement {
	return provenance.Statement{
		Tool: "Gradient <&> \"so\"", ToolID: "PagW53lsaa2KiGgg5wR4", RequestID: "5f0c1d9e-4b7a-4c7e-8f5e-2a9b6d3c1e70", Seed: 4294967295,
		Created: time.Date(2026, 11, 15, 9, 30, 0, 0, time.FixedZone("", 3600)),
	}
}

// texts gives the text of each element by its name.
func texts(t *testing.T, packet []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	d := xml.NewDecoder(strings.NewReader(string(packet)))
	var name string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			name = token.Name.Local
		case xml.CharData:
			all[name] += string(token)
		}
	}
}

func TestAStatement(t *testing.T) {
	t.Parallel()
	got := texts(t, statement().XMPPacket())
	for name, want := range map[string]string{
		"DigitalSourceType": "http://cv.iptc.org/newscodes/digitalsourcetype/algorithmicMedia",
		"CreatorTool":       "Atelier", "CreateDate": "2026-11-15T08:30:00Z", "Tool": `Gradient <&> "so"`, "ToolID": "PagW53lsaa2KiGgg5wR4",
		"RequestID": "5f0c1d9e-4b7a-4c7e-8f5e-2a9b6d3c1e70", "Seed": "4294967295",
	} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
	if _, there := got["description"]; there {
		t.Error("there is a prompt")
	}
}

func TestWhatAModelMade(t *testing.T) {
	t.Parallel()
	s := statement()
	s.Trained, s.Prompt = true, "a fox\n<in> the snow"
	got := texts(t, s.XMPPacket())
	if got["DigitalSourceType"] != "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia" {
		t.Errorf("source type = %q", got["DigitalSourceType"])
	}
	if got["li"] != s.Prompt {
		t.Errorf("prompt = %q, want %q", got["li"], s.Prompt)
	}
}

// TestLongPromptsFit takes prompts that grow when they are written as XML.
func TestLongPromptsFit(t *testing.T) {
	t.Parallel()
	for _, letter := range []string{"x", `"`, "\n", "ü", "狐", "\x00"} {
		s := statement()
		s.Prompt = strings.Repeat(letter, 100_000)
		packet := s.XMPPacket()
		if len(packet) > media.MaxXMP {
			t.Errorf("with %q: %d bytes, at most %d have room", letter, len(packet), media.MaxXMP)
		}
		if strings.ContainsRune(texts(t, packet)["li"], '\ufffd') && letter != "\x00" {
			t.Errorf("with %q: a letter was cut in two", letter)
		}
	}
}
