package library

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"atelier/internal/file/asset"
	"atelier/internal/file/media"
)

// Names are the file names of a file, its thumbnail and its preview, for URLs
// and downloads. A name is "" if there is no such file.
type Names struct {
	File, Thumb, Preview string
}

// ByVariant returns the name of a variant.
func (n Names) ByVariant(variant string) string {
	switch variant {
	case VariantFile:
		return n.File
	case VariantThumb:
		return n.Thumb
	case VariantPreview:
		return n.Preview
	}
	return ""
}

// Keys are the blob keys of a file, its thumbnail and its preview, "" if there
// is none. File names get the extensions of the keys, which follow from the
// content.
type Keys struct {
	Blob, Thumb, Preview string
}

// UploadNames returns the names of an upload, from the name that its owner gave
// it.
func UploadNames(u asset.Upload) Names {
	return namesOf(u.Name, Keys{u.Asset.Blob, u.Asset.Thumb, u.Asset.Preview})
}

// idSuffixLength is the length of the result ID's suffix in a file name, so
// that results of one tool can be saved in one folder.
const idSuffixLength = 8

// ResultNames returns the names of a result, from its tool and ID. Prompts are
// not part of a name, because URLs are shared.
func ResultNames(toolSlug, resultID string, k Keys) Names {
	return namesOf(toolSlug+"-"+resultID[max(0, len(resultID)-idSuffixLength):], k)
}

// RunNames returns the name of the preview of a pending run.
func RunNames(preview string) Names { return namesOf("run", Keys{Preview: preview}) }

// inputName is the name of a run's input files for model servers.
const inputName = "input"

// InputNames returns the name of an input file of a run.
func InputNames(a asset.Asset) Names { return namesOf(inputName, Keys{Blob: a.Blob}) }

func namesOf(base string, k Keys) Names {
	var n Names
	if k.Blob != "" {
		n.File = downloadName(base, path.Ext(k.Blob))
	}

	stem := base
	if ext := path.Ext(base); isMediaExt(ext) {
		stem = strings.TrimSuffix(base, ext)
	}
	if strings.Trim(stem, ". ") == "" {
		stem = defaultName
	}
	if k.Thumb != "" {
		n.Thumb = downloadName(stem+"-"+VariantThumb, path.Ext(k.Thumb))
	}
	if k.Preview != "" {
		n.Preview = downloadName(stem+"-"+VariantPreview, path.Ext(k.Preview))
	}
	return n
}

// isMediaExt reports whether ext is the extension of a supported format.
func isMediaExt(ext string) bool {
	ext = strings.TrimPrefix(strings.ToLower(ext), ".")
	return ext == "jpeg" || slices.ContainsFunc(media.Formats(), func(f media.Format) bool { return f.Ext == ext })
}

// defaultName is the name of a file without a name.
const defaultName = "file"

// maxDownloadName is the maximum length of a name in characters, short enough
// for every file system.
const maxDownloadName = 100

// downloadName returns a name for saving a file: without characters that are
// special in file systems, and with the extension of its content.
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
