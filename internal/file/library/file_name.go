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
// and downloads. A name is empty if there is no such file.
type Names struct {
	File, Thumb, Preview string
}

// ByVariant returns the file name of a variant: the file, its thumbnail or its
// preview. It returns "" for an unknown variant.
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

// Keys are the blob keys of a file, its thumbnail and its preview. A key is
// empty if there is no such file. File names get the extensions of the keys,
// which are derived from the content.
type Keys struct {
	Blob, Thumb, Preview string
}

// UploadNames returns the file names of an upload, derived from the name that
// its owner gave it.
func UploadNames(u asset.Upload) Names {
	return namesOf(u.Name, Keys{u.Asset.Blob, u.Asset.Thumb, u.Asset.Preview})
}

// idSuffixLength is the number of characters at the end of a result's ID that
// its file name contains, so that several results of one tool can be saved in
// one folder.
const idSuffixLength = 8

// ResultNames returns the file names of a result, derived from its tool and
// ID. Names do not contain the prompt, because people pass URLs on.
func ResultNames(toolSlug, resultID string, k Keys) Names {
	return namesOf(toolSlug+"-"+resultID[max(0, len(resultID)-idSuffixLength):], k)
}

// RunNames returns the file name of a pending run's preview. preview is the
// preview's blob key.
func RunNames(preview string) Names { return namesOf("run", Keys{Preview: preview}) }

// inputName is the file name, without extension, of a run's input files in
// URLs for model servers.
const inputName = "input"

// InputNames returns the file name of a run's input file.
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

// isMediaExt reports whether ext is the file extension of a supported format.
func isMediaExt(ext string) bool {
	ext = strings.TrimPrefix(strings.ToLower(ext), ".")
	return ext == "jpeg" || slices.ContainsFunc(media.Formats(), func(f media.Format) bool { return f.Ext == ext })
}

// defaultName is the name for downloads of a file without a name.
const defaultName = "file"

// maxDownloadName is the maximum length of a file name in characters, short
// enough for every file system.
const maxDownloadName = 100

// downloadName returns a file name for downloads: without characters that are
// special in file systems, and with the extension ext.
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
