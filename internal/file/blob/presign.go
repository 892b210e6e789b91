package blob

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/minio/minio-go/v7"
)

// MaxPresignedLifetime is the longest lifetime of a presigned URL. Whoever has
// the URL can read the file until then, also after losing access to it.
const MaxPresignedLifetime = 15 * time.Minute

// Presigner creates presigned URLs, with which clients read files directly from
// the S3 server. It sends no requests. A presigned URL allows one file to be
// read for a short time; it cannot be revoked, so callers check access first.
type Presigner struct {
	bucket   string
	client   *minio.Client
	origin   string
	lifetime time.Duration
}

// PresignOptions are the settings of a Presigner.
type PresignOptions struct {
	// AccessKey and SecretKey are those of the store.
	AccessKey, SecretKey string
	// Endpoint is the URL of the S3 server as clients reach it, if it differs
	// from the endpoint in the address of the store. The server must accept
	// requests with this host name.
	Endpoint string
	// Lifetime is how long a URL works.
	Lifetime time.Duration
}

// NewPresigner returns a Presigner for the store at an s3:// address, as in
// Open.
func NewPresigner(address string, o PresignOptions) (*Presigner, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "s3" {
		return nil, errors.New("presigned URLs require a file store in S3")
	}
	a, err := parseS3(u)
	if err != nil {
		return nil, err
	}
	if o.Endpoint != "" {
		endpoint, err := url.Parse(o.Endpoint)
		if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" || endpoint.User != nil ||
			endpoint.Path != "" && endpoint.Path != "/" || endpoint.RawQuery != "" || endpoint.Fragment != "" {
			return nil, errors.New("the endpoint of presigned URLs must be a scheme and a host, such as https://files.example.com")
		}
		a.endpoint = endpoint
	}
	if o.Lifetime < time.Second || o.Lifetime > MaxPresignedLifetime {
		return nil, fmt.Errorf("the lifetime of presigned URLs must be between 1s and %v", MaxPresignedLifetime)
	}
	b, err := newBucket(a, o.AccessKey, o.SecretKey)
	if err != nil {
		return nil, err
	}
	return &Presigner{
		bucket:   a.bucket,
		client:   b.core.Client,
		origin:   a.endpoint.Scheme + "://" + a.endpoint.Host,
		lifetime: o.Lifetime,
	}, nil
}

// Origin returns the origin of all URLs, such as https://files.example.com.
func (p *Presigner) Origin() string { return p.origin }

// ResponseHeaders are headers that the S3 server sends with a file.
type ResponseHeaders struct {
	ContentType        string
	ContentDisposition string
	CacheControl       string
}

// PresignRead returns a URL with which anyone can read the value of the key
// until the lifetime has passed. The server sends it with the given headers;
// they are part of the signature.
func (p *Presigner) PresignRead(ctx context.Context, key string, h ResponseHeaders) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	query := url.Values{
		"response-content-type":        {h.ContentType},
		"response-content-disposition": {h.ContentDisposition},
		"response-cache-control":       {h.CacheControl},
	}
	u, err := p.client.PresignedGetObject(ctx, p.bucket, key, p.lifetime, query)
	if err != nil {
		return "", fmt.Errorf("presign %s: %w", key, err)
	}
	return u.String(), nil
}
