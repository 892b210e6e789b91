"""The client for asyncio. The blocking one in the folder beside it is derived from this code."""
