/** Hash takes bytes in pieces. */
export interface Hash {
    update(bytes: Uint8Array): void;
    /** hex returns the hash as hexadecimal text. Nothing may be added afterwards. */
    hex(): string;
}
/** SHA256 hashes a stream. WebCrypto can hash only what is in memory as a whole, and only on pages loaded with TLS. */
export declare class SHA256 implements Hash {
    private readonly state;
    private readonly block;
    private readonly view;
    private readonly words;
    private filled;
    private length;
    update(bytes: Uint8Array): void;
    hex(): string;
    private compress;
}
