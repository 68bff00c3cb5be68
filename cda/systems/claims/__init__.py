"""Secure look-up of insurance claims: read-only, recorded, and closed when anything fails."""
