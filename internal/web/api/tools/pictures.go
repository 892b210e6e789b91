package tools

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"atelier/internal/base/fault"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/blob"
)

// getPicture serves GET /catalog/{picture}: it returns a picture of the
// catalog. The name of a picture is its SHA-256, so its content never changes.
func (h *Handler) getPicture(w http.ResponseWriter, r *http.Request) error {
	notFound := fault.New(fault.NotFound, "There is no such picture.")
	name, isPNG := strings.CutSuffix(r.PathValue("picture"), ".png")
	if !isPNG || len(name) != 64 || strings.Trim(name, "0123456789abcdef") != "" {
		return notFound
	}

	key := catalog.AssetKey(catalog.Asset(name))
	info, err := h.Blobs.Stat(r.Context(), key)
	if errors.Is(err, blob.ErrNotFound) {
		return notFound
	}
	if err != nil {
		return err
	}
	body, err := h.Files.Open(r.Context(), blob.File{Key: key, Size: info.Size, SHA256: name}, 0, info.Size)
	if errors.Is(err, blob.ErrNotFound) {
		return notFound
	}
	if err != nil {
		return err
	}
	defer body.Close()
	picture, err := io.ReadAll(body) // manifests limit the size; reading first avoids an error after the status 200 was sent
	if err != nil {
		return err
	}

	header := w.Header()
	header.Set("Content-Type", "image/png")
	header.Set("Content-Length", strconv.FormatInt(info.Size, 10))
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	header.Set("Cross-Origin-Resource-Policy", "cross-origin") // plugins show the pictures in their own pages
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	_, err = w.Write(picture)
	return err
}
