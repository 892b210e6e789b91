package blob

import "path"

const unknownType = "application/octet-stream"

// mediaTypes are the content types that can be stored, each with the file
// extension of its keys.
var mediaTypes = []struct{ ext, contentType string }{
	{".avif", "image/avif"},
	{".gif", "image/gif"},
	{".heic", "image/heic"},
	{".heif", "image/heif"},
	{".jpg", "image/jpeg"},
	{".png", "image/png"},
	{".webp", "image/webp"},
	{".mov", "video/quicktime"},
	{".mp4", "video/mp4"},
	{".webm", "video/webm"},
	{".aac", "audio/aac"},
	{".flac", "audio/flac"},
	{".mp3", "audio/mpeg"},
	{".ogg", "audio/ogg"},
	{".wav", "audio/wav"},
	{".glb", "model/gltf-binary"},
	{".json", "application/json"},
	{".txt", "text/plain; charset=utf-8"},
	{".zip", "application/zip"},
}

func contentTypeOf(key string) string {
	ext := path.Ext(key)
	for _, m := range mediaTypes {
		if m.ext == ext {
			return m.contentType
		}
	}
	return unknownType
}
