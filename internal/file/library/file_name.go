package library

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"atelier/internal/file/asset"
	"atelier/internal/file/media"
)

// Names are what a file and the pictures of it are called, at the end of their
// addresses and where they are saved. An empty one is for what there is not.
type Names struct {
	Whole, Thumb, Preview string
}

// Of gives the name of a variant.
func (n Names) Of(variant string) string {
	switch variant {
	case Whole:
		return n.Whole
	case Thumb:
		return n.Thumb
	case Preview:
		return n.Preview
	}
	return ""
}

// Keys are where the bytes of a file and the pictures of it lie in the blob
// store, "" for what there is not. The extensions of names are theirs, since they
// follow from the bytes.
type Keys struct {
	Blob, Thumb, Preview string
}

// UploadNames are what an upload is called: as whoever brought it said.
func UploadNames(u asset.Upload) Names {
	return namesOf(u.Name, Keys{u.Asset.Blob, u.Asset.Thumb, u.Asset.Preview})
}

// idSuffixLength is how much of its id the name of a result has, so that those of one tool
// can lie in one folder.
const idSuffixLength = 8

// ResultNames are what a result is called: as its tool, and nothing that was asked
// of it. Addresses are passed on, and prompts are not for everybody.
func ResultNames(toolSlug, resultID string, k Keys) Names {
	return namesOf(toolSlug+"-"+resultID[max(0, len(resultID)-idSuffixLength):], k)
}

// RunNames are what a run that has not ended shows of itself is called.
func RunNames(preview string) Names { return namesOf("run", Keys{Preview: preview}) }

// inputName is what files that runs work on are called, for model servers.
const inputName = "input"

// InputNames are what a file that a run works on is called.
func InputNames(a asset.Asset) Names { return namesOf(inputName, Keys{Blob: a.Blob}) }

func namesOf(base string, k Keys) Names {
	var n Names
	if k.Blob != "" {
		n.Whole = downloadName(base, path.Ext(k.Blob))
	}
	bare := base
	if ext := path.Ext(base); isMediaExt(ext) {
		bare = strings.TrimSuffix(base, ext)
	}
	if strings.Trim(bare, ". ") == "" {
		bare = defaultName
	}
	if k.Thumb != "" {
		n.Thumb = downloadName(bare+"-"+Thumb, path.Ext(k.Thumb))
	}
	if k.Preview != "" {
		n.Preview = downloadName(bare+"-"+Preview, path.Ext(k.Preview))
	}
	return n
}

// isMediaExt reports whether an extension is one that files here have.
func isMediaExt(ext string) bool {
	ext = strings.TrimPrefix(strings.ToLower(ext), ".")
	return ext == "jpeg" || slices.ContainsFunc(media.Formats(), func(f media.Format) bool { return f.Ext == ext })
}

// defaultName is what a file is called that has no name.
const defaultName = "file"

// maxDownloadName keeps names short enough for every file system, in characters.
const maxDownloadName = 100

// downloadName makes a name to save a file under: without anything that a file
// system takes for more than a letter, and with the extension that the bytes
// deserve.
func downloadName(name, ext string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, name)
	given := path.Ext(name)
	if lower := strings.ToLower(given); lower == ext || lower == ".jpeg" && ext == ".jpg" {
		name = strings.TrimSuffix(name, given)
		ext = lower
	}
	if letters := []rune(name); len(letters) > maxDownloadName {
		name = string(letters[:maxDownloadName])
	}
	if name = strings.Trim(name, ". "); name == "" {
		name = defaultName
	}
	return name + ext
}
