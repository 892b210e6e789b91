package media

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	// maxSceneDepth is the maximum nesting of the JSON of a 3D model.
	maxSceneDepth = 128
	// xmpExtension is the glTF extension with XMP metadata. All its occurrences
	// are removed.
	xmpExtension = "KHR_xmp_json_ld"
)

// sceneMetadata lists the members of the JSON of a 3D model that are emptied.
// The keys are the top-level members that contain them, and "" for the top
// level itself. If a top-level member is an array, the list applies to its
// elements. Members named extras in other objects are kept: programs need them,
// for example for the names of morph targets.
var sceneMetadata = map[string][]string{
	"":       {"extras"},
	"asset":  {"generator", "copyright", "extras"},
	"scenes": {"extras"},
}

// planGLB plans how to clean a GLB file. Metadata in its JSON is replaced by
// empty values and spaces, and unknown chunks by zeros, so that all chunks keep
// their size.
func planGLB(s *source) ([]part, error) {
	scene, err := findScene(s)
	if err != nil {
		return nil, err
	}

	c := &sceneScanner{in: bufio.NewReader(io.NewSectionReader(s, scene.from, scene.to-scene.from)), at: scene.from}
	if err := c.scanValue("", 0); err != nil {
		return nil, fmt.Errorf("parse scene: %w", err)
	}
	for at := scene.to; at < s.size; {
		b, err := s.peekBytes(at, 8)
		if err != nil {
			return nil, err
		}

		next := at + 8 + int64(binary.LittleEndian.Uint32(b))
		if string(b[4:]) != "BIN\x00" {
			c.zero(at+8, next)
		}
		at = next
	}
	return c.parts(s.size)
}

// sceneScanner finds the metadata in the JSON of a 3D model. It does not check
// that the JSON is valid, which AnalyzeFile does.
type sceneScanner struct {
	in *bufio.Reader
	at int64 // offset of the next byte in the file
	overwrites
}

// nextByte returns the next byte. If skip is true, it skips white space first.
func (c *sceneScanner) nextByte(skip bool) (byte, error) {
	for {
		b, err := c.in.ReadByte()
		if err != nil {
			return 0, err
		}
		if c.at++; !skip || !strings.ContainsRune(" \t\r\n", rune(b)) {
			return b, nil
		}
	}
}

// scanValue scans the next value.
func (c *sceneScanner) scanValue(path string, depth int) error {
	b, err := c.nextByte(true)
	if err != nil {
		return err
	}
	if depth > maxSceneDepth {
		return errors.New("the scene is nested too deeply")
	}

	switch b {
	case '{':
		return c.scanObject(path, depth)
	case '[':
		return c.scanArray(path, depth)
	case '"':
		_, err = c.scanString()
		return err
	case ',', ':', ']', '}':
		return errors.New("a JSON value is missing")
	}
	return c.scanLiteral()
}

// scanArray scans the rest of an array, after its opening bracket.
func (c *sceneScanner) scanArray(path string, depth int) error {
	for {
		ended, err := c.skipTo(']')
		if err != nil || ended {
			return err
		}
		if err := c.scanValue(path, depth+1); err != nil {
			return err
		}
	}
}

// scanObject scans the rest of an object, after its opening brace.
func (c *sceneScanner) scanObject(path string, depth int) error {
	for {
		ended, err := c.skipTo('}')
		if err != nil || ended {
			return err
		}
		if b, err := c.nextByte(true); err != nil || b != '"' {
			return errors.Join(err, errors.New("the name of a JSON member is missing"))
		}

		key, err := c.scanString()
		if err != nil {
			return err
		}
		if b, err := c.nextByte(true); err != nil || b != ':' {
			return errors.Join(err, errors.New("a colon is missing in a JSON object"))
		}

		inner := "/"
		if depth == 0 {
			inner = key
		}
		if key == xmpExtension || slices.Contains(sceneMetadata[path], key) {
			err = c.blankValue(depth)
		} else {
			err = c.scanValue(inner, depth+1)
		}
		if err != nil {
			return err
		}
	}
}

// skipTo skips spaces and commas, and reports whether the next byte is the
// given end of the array or object.
func (c *sceneScanner) skipTo(end byte) (bool, error) {
	for {
		b, err := c.nextByte(true)
		switch {
		case err != nil:
			return false, err
		case b == end:
			return true, nil
		case b != ',':
			return false, c.unread()
		}
	}
}

func (c *sceneScanner) unread() error {
	c.at--
	return c.in.UnreadByte()
}

// blankValue replaces the next value by an empty value of the same type,
// followed by spaces.
func (c *sceneScanner) blankValue(depth int) error {
	first, err := c.nextByte(true)
	if err != nil {
		return err
	}
	if err := c.unread(); err != nil {
		return err
	}

	from := c.at
	found := len(c.overwrites)
	if err := c.scanValue("/", depth+1); err != nil {
		return err
	}

	empty := map[byte]string{'{': "{}", '[': "[]", '"': `""`}[first]
	if empty == "" {
		empty = "0"
	}
	c.overwrites = c.overwrites[:found] // overwrites inside the value are not needed, because the whole value is overwritten
	blank := bytes.Repeat([]byte(" "), int(c.at-from))
	copy(blank, empty)
	c.write(from, blank)
	return nil
}

// scanString scans the rest of a string, after its opening quotation mark. It
// returns the string, or "" if the string is longer than any name of metadata.
func (c *sceneScanner) scanString() (string, error) {
	const longest = 6*len(xmpExtension) + 2 // each character can be written as \uXXXX
	raw := []byte{'"'}
	for escaped := false; ; {
		b, err := c.nextByte(false)
		if err != nil {
			return "", err
		}
		if len(raw) < longest {
			raw = append(raw, b)
		}
		if b == '"' && !escaped {
			break
		}
		escaped = b == '\\' && !escaped
	}

	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", nil // too long, or damaged
	}
	return text, nil
}

// scanLiteral scans the rest of a number or a word such as true.
func (c *sceneScanner) scanLiteral() error {
	for {
		b, err := c.nextByte(false)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if strings.ContainsRune(",]} \t\r\n", rune(b)) {
			return c.unread()
		}
	}
}
