"""The blocking client, derived from the one for asyncio by build/clients."""
